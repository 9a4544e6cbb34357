"""Which steps are wanted."""

from __future__ import annotations

import pytest

from stepscope.analysis.options import Options, parse_steps
from stepscope.errors import StepscopeError


@pytest.mark.parametrize(
    ("text", "steps"),
    [("7", (7, 7)), ("3:8", (3, 8)), ("3:", (3, None)), (":8", (None, 8)), (" 0 ", (0, 0)), ("5:5", (5, 5))],
)
def test_ranges(text: str, steps: tuple[int | None, int | None]) -> None:
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", ":", "a", "3-8", "1:2:3", "-1", "8:3", "1.5"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(StepscopeError):
        parse_steps(text)


def test_both_ends_count() -> None:
    options = Options(steps=(3, 5))
    assert [step for step in range(10) if options.wants(step)] == [3, 4, 5]
    assert Options().wants(99)
