"""Samples of sweeps have what they promise."""

from __future__ import annotations

from tests.sample import pairs, spread


def test_every_value_is_among_the_pairs() -> None:
    found = pairs("abcd", "xyz", every=False)
    assert len(found) == 4
    assert {one for one, _ in found} == set("abcd") and {other for _, other in found} == set("xyz")


def test_the_soak_takes_all_pairs() -> None:
    assert len(set(pairs("abcd", "xyz", every=True))) == 12


def test_a_spread_has_both_ends() -> None:
    assert spread(range(10), 4, every=False) == [0, 3, 6, 9]
    assert spread(range(10), 1, every=False) == [0]
    assert spread(range(3), 4, every=False) == spread(range(3), 1, every=True) == [0, 1, 2]
