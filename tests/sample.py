"""What `make test` takes of a sweep: each value or each kind at least once. `make soak` takes every combination."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from hashlib import sha256
from typing import TypeVar

import pytest

SOAKS = bool(os.environ.get("STEPSCOPE_SOAK"))
in_soak = pytest.mark.skipif(not SOAKS, reason="only in make soak")

T = TypeVar("T")
U = TypeVar("U")


def pairs(first: Sequence[T], second: Sequence[U], every: bool = SOAKS) -> list[tuple[T, U]]:
    """All combinations in the soak; otherwise as few as have every value of both."""
    if every:
        return [(one, other) for one in first for other in second]
    return [
        (first[place % len(first)], second[place % len(second)])
        for place in range(max(len(first), len(second)))
    ]


def spread(cases: Sequence[T], count: int, every: bool = SOAKS) -> list[T]:
    """All cases in the soak; otherwise about `count` of them, from the first to the last at equal distances."""
    if every or len(cases) <= count:
        return [*cases]
    return [cases[round(place * (len(cases) - 1) / max(1, count - 1))] for place in range(count)]


def of_each(
    cases: Iterable[T],
    kind: Callable[[T], Hashable],
    count: int = 1,
    name: Callable[[T], str] = str,
    every: bool = SOAKS,
) -> list[T]:
    """All cases in the soak; otherwise `count` of each kind, in their order.

    Which ones the hashes of their names say, so that a case that is added changes the choice within its own kind only.
    """
    if every:
        return [*cases]
    cases = [*cases]
    groups: dict[Hashable, list[int]] = {}
    for place, case in enumerate(cases):
        groups.setdefault(kind(case), []).append(place)
    chosen = {
        place
        for places in groups.values()
        for place in sorted(places, key=lambda place: sha256(name(cases[place]).encode()).digest())[:count]
    }
    return [cases[place] for place in sorted(chosen)]
