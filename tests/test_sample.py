"""Samples of sweeps have what they promise."""

from __future__ import annotations

from tests.sample import of_each, pairs, spread


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


WORDS = ["apple", "avocado", "banana", "blueberry", "blackberry", "cherry"]


def test_of_each_kind_there_is_one_and_the_soak_takes_all() -> None:
    found = of_each(WORDS, lambda word: word[0], every=False)
    assert [word[0] for word in found] == ["a", "b", "c"]
    assert len(of_each(WORDS, lambda word: word[0], 2, every=False)) == 5
    assert of_each(WORDS, lambda word: word[0], every=True) == WORDS


def test_another_case_changes_the_choice_within_its_kind_only() -> None:
    before = of_each(WORDS, lambda word: word[0], every=False)
    after = of_each(["coconut", *reversed(WORDS)], lambda word: word[0], every=False)
    assert {word for word in before if word[0] != "c"} == {word for word in after if word[0] != "c"}
