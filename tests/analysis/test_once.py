"""Values that several threads ask for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepscope.analysis.once import shared


class Thing:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        self.together = threading.Barrier(4)

    @shared
    def base(self) -> int:
        """Takes a while."""
        self.computed.append("base")
        threading.Event().wait(0.02)
        return 20

    @shared
    def more(self) -> int:
        """Asks for the other."""
        self.computed.append("more")
        return self.base + 1

    @shared
    def broken(self) -> int:
        """Never there."""
        raise ValueError("no")


def test_each_value_is_computed_once() -> None:
    thing = Thing()

    def ask(name: str) -> int:
        thing.together.wait()
        found: int = getattr(thing, name)
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, ["base", "more", "more", "base"])) == [20, 21, 21, 20]
    assert sorted(thing.computed) == ["base", "more"]


def test_objects_do_not_share() -> None:
    first, second = Thing(), Thing()
    assert first.more == second.more == 21
    assert sorted(first.computed + second.computed) == ["base", "base", "more", "more"]


def test_a_fault_is_everybodys() -> None:
    thing = Thing()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            _ = thing.broken
