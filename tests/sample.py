"""What `make test` takes of a sweep: each value at least once. `make soak` takes every combination."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

SOAKS = bool(os.environ.get("STEPSCOPE_SOAK"))

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
