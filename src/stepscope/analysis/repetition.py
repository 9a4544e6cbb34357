"""How often a sequence repeats itself, and where each repetition begins.

A sequence of names is cut at the occurrences of one of them, the anchor. The cut is good if every piece holds the
same names equally often. Of the anchors whose cut is about as good as the best, the most frequent one gives
the shortest period: a block inside the step that repeats leaves the rest of the step unevenly spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

# A cut below this does not show a repetition: at tokens that are known to mark one, and at any others.
GOOD_ENOUGH = 0.6
CONVINCING = 0.8
_AS_GOOD = 0.02
_MOST_CANDIDATES = 40
_MOST_PER_PERIOD = 8


@dataclass(frozen=True)
class Repetition:
    """`anchors`: the places of the anchor, one in each period. `evenness`: 1 if all periods hold the same."""

    anchors: pl.Series
    evenness: float

    @property
    def count(self) -> int:
        """How many periods there are."""
        return len(self.anchors)

    @property
    def period(self) -> float:
        """How many names one period has."""
        return float(self.anchors.cast(pl.Int64).diff().median() or 0)


def repetition(
    tokens: pl.Series, likely: Sequence[pl.Series] = (), perhaps: Sequence[pl.Series] = ()
) -> Repetition | None:
    """The best cut of the tokens (of any type that can be compared), or None.

    `likely` marks tokens that come once or a few times in each period, the likeliest first: a good cut at them is
    taken, since a block that repeats inside the period may be nearly all of it. One at the tokens of `perhaps` is
    taken if no other is better.
    """
    places = pl.DataFrame({"token": tokens, "place": pl.int_range(len(tokens), eager=True)})
    grouped = places.group_by("token", maintain_order=True).agg(
        pl.col("place"), pl.len(), irregularity=_irregularity()
    )
    candidates = grouped.filter(pl.col("len") >= 2)
    for marked in likely:
        found = _best(tokens, _thinned(candidates, tokens.filter(marked)))
        if found is not None and found.evenness >= GOOD_ENOUGH:
            return found
    best = _best(tokens, _by_count(candidates))
    if best is None or best.evenness < CONVINCING:
        return None
    for marked in perhaps:
        found = _best(tokens, _thinned(candidates, tokens.filter(marked)))
        if found is not None and found.evenness >= best.evenness - _AS_GOOD:
            return found
    return best


def _irregularity() -> pl.Expr:
    """How much the distances between the places of a token vary."""
    steps = pl.col("place").diff()
    return (steps.std() / steps.mean()).fill_null(0.0)


def _by_count(candidates: pl.DataFrame) -> list[pl.Series]:
    """Of the tokens that occur equally often the most regular one."""
    ranked = candidates.sort("len", "irregularity", descending=[True, False], maintain_order=True)
    by_count = ranked.group_by("len", maintain_order=True).agg(
        pl.col("place").first(), pl.col("irregularity").first(), pl.len().alias("tokens")
    )
    return list(by_count.sort("tokens", descending=True).head(_MOST_CANDIDATES)["place"])


def _thinned(candidates: pl.DataFrame, among: pl.Series) -> list[pl.Series]:
    """The places of some tokens, and every second, third, … of them: they may come several times in a period."""
    some = candidates.filter(pl.col("token").is_in(among.unique().implode())).sort("irregularity")
    found = []
    for places in some.head(_MOST_PER_PERIOD)["place"]:
        found += [places.gather_every(n) for n in range(1, _MOST_PER_PERIOD + 1) if len(places) >= 2 * n]
    return found


def _best(tokens: pl.Series, candidates: list[pl.Series]) -> Repetition | None:
    tried = [Repetition(places, _evenness(tokens, places)) for places in candidates]
    if not tried:
        return None
    best = max(found.evenness for found in tried)
    return max((found for found in tried if found.evenness >= best - _AS_GOOD), key=lambda found: found.count)


def _evenness(tokens: pl.Series, anchors: pl.Series) -> float:
    """The share of tokens that every piece between anchors has as often as the typical piece.

    What lies before the first anchor and after the last makes one more piece; it counts where there are few.
    """
    piece = anchors.search_sorted(pl.int_range(len(tokens), eager=True), side="right")
    pieces = len(anchors)
    frame = pl.DataFrame({"token": tokens, "piece": piece}).with_columns(pl.col("piece") % pieces)
    if pieces > 3:
        frame = frame.filter(pl.col("piece") != 0)
        pieces -= 1
    counts = frame.group_by("token", "piece").len()
    sizes = counts.group_by("token").agg(pl.col("len").sort(), empty=pieces - pl.len().cast(pl.Int64))
    middle = (pieces - 1) // 2 - pl.col("empty")
    typical = pl.when(middle < 0).then(0).otherwise(pl.col("len").list.get(middle.clip(0), null_on_oob=True))
    usual = sizes.select("token", "empty", typical=typical)
    both = counts.join(usual, on="token")
    shared = both.select(pl.min_horizontal("len", "typical").sum()).item()
    present = both.select(pl.max_horizontal("len", "typical").sum()).item()
    absent = usual.select((pl.col("typical") * pl.col("empty")).sum()).item()
    return float(shared / max(1, present + absent))
