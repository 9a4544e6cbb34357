"""`mostly` is said of more than half."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.mostly import mostly_in


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        ([60, 30, 10], ", mostly in a"),
        ([39, 33, 28], ", mostly in a and b"),
        ([20, 19, 18], ", mostly in a, b and c"),
        ([10, 9, 8], ", most of all in a"),
        ([50], ", most of all in a"),
        ([], ""),
    ],
)
def test_the_fewest_names_that_take_most_of_it(ns: list[int], text: str) -> None:
    names = [{"name": name, "ns_per_step": each} for name, each in zip("abc", ns, strict=False)]
    assert mostly_in(names, 100) == text


def test_time_without_a_name_is_passed_over() -> None:
    unnamed = {"name": None, "ns_per_step": 40}
    assert mostly_in([unnamed, {"name": "a", "ns_per_step": 30}], 100) == ""
    assert mostly_in([{"name": "a", "ns_per_step": 45}, unnamed], 100) == ", most of all in a"
