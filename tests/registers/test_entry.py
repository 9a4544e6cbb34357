"""Numbers are recorded with their origin, and stay plain numbers."""

from __future__ import annotations

import pytest

from stepscope.registers import entry
from stepscope.registers.entry import Entry, level, measured, policy


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of its own."""
    monkeypatch.setattr(entry, "ENTRIES", {})


def test_what_comes_back_is_the_plain_number() -> None:
    found = measured(
        "GAP_NS", 300, unit="ns", device="H200", how="a benchmark", when="2026-11-15", seen="200 to 400"
    )
    assert (found, type(found)) == (300, int)
    assert entry.ENTRIES["GAP_NS"] == Entry(
        "calibration", "GAP_NS", 300, "ns", "a benchmark", "H200", "2026-11-15", "200 to 400"
    )


def test_each_register_has_its_own_kind() -> None:
    assert policy("ROWS", 10, unit="rows", why="one screen") == 10
    assert level("RISK", 0.05, unit="probability", why="convention") == 0.05
    assert [each.register for each in entry.ENTRIES.values()] == ["policy", "levels"]


def test_a_name_is_given_once() -> None:
    policy("ROWS", 10, unit="rows", why="one screen")
    with pytest.raises(ValueError, match="ROWS"):
        level("ROWS", 20, unit="rows", why="another")
