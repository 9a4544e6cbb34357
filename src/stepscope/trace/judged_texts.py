"""What names mean is judged once in a process: ranks of one job have the same names, and to ask patterns costs more than a small rank does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import polars as pl

T = TypeVar("T")
MOST_ASKED = 2_000  # of more names at once, those of a large trace, each is looked at by Polars
MOST_KEPT = 100_000


class Judged(Generic[T]):
    """Answers to questions about names."""

    def __init__(self) -> None:
        self._known: dict[Hashable, T] = {}

    def ask(self, rows: Sequence[Hashable], judge: Callable[[list[int]], Sequence[T]]) -> list[T]:
        """For each row what is known of it; `judge` is given the places of those of which nothing is known yet."""
        known = self._known
        fresh = [at for at, row in enumerate(rows) if row not in known]
        if fresh:
            if len(known) > MOST_KEPT:
                known = self._known = {}  # whoever asks meanwhile keeps the old ones
                fresh = list(range(len(rows)))
            known.update(zip((rows[at] for at in fresh), judge(fresh), strict=True))
        return [known[row] for row in rows]


_contains: dict[str, Judged[bool]] = {}


def contains(texts: pl.Series, pattern: str) -> pl.Series:
    """Whether each of the different texts matches the pattern."""
    if len(texts) > MOST_ASKED:
        return texts.str.contains(pattern)
    memo = _contains.setdefault(pattern, Judged())
    found = memo.ask(texts.to_list(), lambda fresh: texts.gather(fresh).str.contains(pattern).to_list())
    return pl.Series(texts.name, found, dtype=pl.Boolean)
