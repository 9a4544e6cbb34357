"""How often a sequence repeats itself, and where each repetition begins.

A sequence of names is cut at the occurrences of one of them, the anchor. The cut is good if every piece holds the
same names equally often. Of the anchors whose cut is about as good as the best, the most frequent one gives
the shortest period: a block inside the step that repeats leaves the rest of the step unevenly spread.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.steps import (
    ALIKE_PERIODS,
    AS_EVEN,
    EVEN_PERIODS,
    FAR_MORE_ALIKE,
    FEW_PERIODS,
    MARKS_PER_PERIOD,
    NETWORKS_IN_TURN,
    PERIOD_CANDIDATES,
    WHOLE_PERIOD,
    WHOLE_PERIOD_MOST,
)


@dataclass(frozen=True)
class Repetition:
    """`anchors`: the places of the anchor, one in each period. `evenness`: 1 if all periods hold the same.

    `alike`: the share of periods that hold nearly the same as the typical one. `whole`: what lies before the first
    anchor and after the last makes one more such period, so the sequence begins where a period does.
    """

    anchors: pl.Series
    evenness: float
    alike: float
    whole: bool

    @property
    def count(self) -> int:
        """How many periods there are."""
        return len(self.anchors)


def repetition(
    tokens: pl.Series, likely: Sequence[pl.Series] = (), perhaps: Sequence[pl.Series] = ()
) -> Repetition | None:
    """The best cut of the tokens (of any type that can be compared), or None.

    `likely` marks tokens that come once or a few times in each period, the likeliest first. A cut at them is taken
    if most of its periods are alike: what comes only every few periods, such as an evaluation, does not matter then,
    and a block that repeats inside the period cannot be mistaken for it. A cut at the tokens of `perhaps`
    is taken if no other is better.
    """
    places = pl.DataFrame({"token": tokens, "place": pl.int_range(len(tokens), eager=True)})
    grouped = places.group_by("token", maintain_order=True).agg(
        pl.col("place"), pl.len(), irregularity=_irregularity()
    )
    candidates = grouped.filter(pl.col("len") >= 2)
    for marked in likely:
        known = _most_alike(tokens, _thinned(candidates, tokens.filter(marked)))
        if known is not None:
            return known
    best = _best(tokens, _by_count(candidates))
    if best is None or best.evenness < EVEN_PERIODS:
        return None
    for marked in perhaps:
        other = _best(tokens, _thinned(candidates, tokens.filter(marked)))
        if other is not None and other.evenness >= best.evenness - AS_EVEN:
            return other
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
    return list(by_count.sort("tokens", descending=True).head(PERIOD_CANDIDATES)["place"])


def _thinned(candidates: pl.DataFrame, among: pl.Series) -> list[pl.Series]:
    """The places of some tokens; then every second, third, … of them: they may come several times in a period."""
    some = candidates.filter(pl.col("token").is_in(among.unique().implode())).sort("irregularity")
    found = list(some.head(MARKS_PER_PERIOD)["place"])
    return [
        places.gather_every(n)
        for n in range(1, MARKS_PER_PERIOD + 1)
        for places in found
        if len(places) >= 2 * n
    ]


def _most_alike(tokens: pl.Series, candidates: list[pl.Series]) -> Repetition | None:
    """The first cut with mostly like periods; or one after it with far more: two networks that are trained in turn."""
    tried = [_cut_at(tokens, places) for places in candidates]
    found = next((cut for cut in tried if cut.alike > MAJORITY), None)
    if found is None:
        return None
    in_turn = [cut for cut in tried if cut.count * NETWORKS_IN_TURN >= found.count]
    return next((cut for cut in in_turn if cut.alike >= found.alike + FAR_MORE_ALIKE), found)


def _best(tokens: pl.Series, candidates: list[pl.Series]) -> Repetition | None:
    tried = [_cut_at(tokens, places) for places in candidates]
    if not tried:
        return None
    best = max(found.evenness for found in tried)
    return max((found for found in tried if found.evenness >= best - AS_EVEN), key=lambda found: found.count)


def _cut_at(tokens: pl.Series, anchors: pl.Series) -> Repetition:
    """How even the cut is: the share of tokens that the pieces between anchors have as often as the typical piece.

    What lies before the first anchor and after the last makes one more piece; it counts where there are few.
    """
    piece = anchors.search_sorted(pl.int_range(len(tokens), eager=True), side="right")
    counts = pl.DataFrame({"token": tokens, "piece": piece % len(anchors)}).group_by("token", "piece").len()
    inner = counts.filter(pl.col("piece") != 0) if len(anchors) > FEW_PERIODS else counts
    pieces = len(anchors) - (len(anchors) > FEW_PERIODS)
    both = counts.join(_typical(inner, pieces), on="token", how="left").with_columns(
        pl.col("typical").fill_null(0)
    )
    size = int(both.unique("token")["typical"].sum())
    found = both.group_by("piece").agg(
        shared=pl.min_horizontal("len", "typical").sum(),
        total=pl.max_horizontal("len", "typical").sum() + size - pl.col("typical").sum(),
        usual=pl.col("len").filter(pl.col("typical") > 0).sum(),
    )
    outer = found.filter(pl.col("piece") == 0)
    whole = (
        outer.select(
            (pl.col("shared") >= WHOLE_PERIOD * size) & (pl.col("usual") <= WHOLE_PERIOD_MOST * size)
        )
        .to_series()
        .any()
    )
    inside = found.filter(pl.col("piece") != 0) if len(anchors) > FEW_PERIODS else found
    alike = inside.select((pl.col("shared") >= ALIKE_PERIODS * pl.col("total")).sum()).item() / pieces
    shared, total = inside.select(pl.col("shared").sum(), pl.col("total").sum()).row(0)
    return Repetition(anchors, shared / max(1, total), alike, whole)


def _typical(counts: pl.DataFrame, pieces: int) -> pl.DataFrame:
    """How often a token comes in the piece in the middle, when they are sorted by it; a piece may have none."""
    sizes = counts.group_by("token").agg(pl.col("len").sort(), empty=pieces - pl.len().cast(pl.Int64))
    middle = (pieces - 1) // 2 - pl.col("empty")
    typical = pl.when(middle < 0).then(0).otherwise(pl.col("len").list.get(middle.clip(0), null_on_oob=True))
    return sizes.select("token", typical=typical.cast(pl.Int64))
