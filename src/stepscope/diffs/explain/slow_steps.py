"""Steps that are slow once in a while: a checkpoint, an evaluation, a log. The mean drowns in them and the median does not see them.

A step is slow if it takes far longer than the usual one of its rank, and rare if at most a quarter are. That one run has more
of them than the other is no accident where so unequal counts are unlikely by chance (Fisher's exact test), or where the slow
steps do something that no other step of either run does: call an op, write a file, compile. A step that is only interrupted
does what all others do, for longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.diffs.data.model import Tail
from stepscope.diffs.data.samples import CELL, Samples

SLOW = 0.5  # more than the usual step, at least
FAR = 8  # median absolute deviations, at least
RARE = 0.25
FEWEST_STEPS = 4
LEVEL = 0.05 / 6  # as for every kind of rows
NOTABLE = 0.05  # of the step: what is told though it may be chance
# Parts whose names say what a step did, not how long it was held up.
_DEEDS = ("io", "compile")
_IDLE_AND_UNSAID = ("unexplained", "unrecorded")


@dataclass(frozen=True)
class Side:
    """The slow steps of a run, and what they took more than usual, per step of the run."""

    slow: pl.DataFrame
    usual: pl.DataFrame
    excess_ns: float
    times: float  # as long as the usual step, on average

    @property
    def steps(self) -> int:
        """All that count."""
        return len(self.slow) + len(self.usual)


def tail_of(a: Samples, b: Samples) -> Tail | None:
    """What differs in the slow steps; None where neither has any."""
    sides = _side(a), _side(b)
    if not any(len(side.slow) for side in sides):
        return None
    more = 1 if sides[1].excess_ns >= sides[0].excess_ns else 0
    samples, other = (a, b)[more], (b, a)[more]
    part, name = _cause(samples, sides[more])
    chance = _fisher(*((len(side.slow), side.steps) for side in sides))
    only_one = not len(sides[1 - more].slow)
    is_deed = only_one and _does_else(samples, sides[more], other)
    return Tail(
        a_slow=len(sides[0].slow),
        b_slow=len(sides[1].slow),
        a_steps=sides[0].steps,
        b_steps=sides[1].steps,
        a_excess_ns=round(sides[0].excess_ns, 1),
        b_excess_ns=round(sides[1].excess_ns, 1),
        times=round(sides[more].times, 2),
        part=part,
        name=name,
        significant=chance < LEVEL or is_deed,
    )


def _side(samples: Samples) -> Side:
    by_rank = ["recording", "rank"]
    cells = samples.cells.with_columns(usual=pl.col("ns").median().over(by_rank)).with_columns(
        away=(pl.col("ns") - pl.col("usual")).abs().median().over(by_rank), count=pl.len().over(by_rank)
    )
    longer = pl.col("ns") - pl.col("usual")
    is_slow = (longer > SLOW * pl.col("usual")) & (longer > FAR * pl.col("away"))
    slow = cells.filter(is_slow & (pl.col("count") >= FEWEST_STEPS))
    if len(slow) > RARE * len(cells):
        slow = slow.clear()
    usual = cells.join(slow, on=list(CELL), how="anti")
    excess = float((slow["ns"] - slow["usual"]).sum()) / max(1, len(cells))
    return Side(slow, usual, excess, float((slow["ns"] / slow["usual"]).mean() or 1.0))  # type: ignore[arg-type]


def _cause(samples: Samples, side: Side) -> tuple[str | None, str | None]:
    """The part, and the name in it, that took most of what the slow steps took more."""
    parts = _more(samples.parts, side, ["part"]).filter(~pl.col("part").is_in(_IDLE_AND_UNSAID))
    if not len(parts):
        return None, None
    part = str(parts["part"][0])
    names = _more(samples.names.filter(pl.col("part") == part), side, ["name"])
    return part, str(names["name"][0]) if len(names) else None


def _more(rows: pl.DataFrame, side: Side, key: Sequence[str]) -> pl.DataFrame:
    """By key what a slow step takes more than a usual one on average, the most first; only what does."""
    sums = [
        rows.join(cells, on=list(CELL), how="semi")
        .group_by(key, maintain_order=True)
        .agg(ns=pl.col("ns").sum() / max(1, len(cells)))
        for cells in (side.slow, side.usual)
    ]
    both = sums[0].join(sums[1], on=list(key), how="left", suffix="_usual", nulls_equal=True)
    more = both.with_columns(more=pl.col("ns") - pl.col("ns_usual").fill_null(0))
    return more.filter(pl.col("more") > 0).sort("more", *key, descending=[True, *[False] * len(key)])


def _does_else(samples: Samples, side: Side, other: Samples) -> bool:
    """Whether the slow steps have ops, files or compilations that no other step has."""
    ops = samples.ops.filter(pl.col("calls") > 0).select(*CELL, "name", "shapes")
    deeds = samples.names.filter(pl.col("part").is_in(_DEEDS)).select(*CELL, "name", shapes="part")
    theirs = pl.concat(
        [
            other.ops.filter(pl.col("calls") > 0).select("name", "shapes"),
            other.names.select("name", shapes="part"),
        ]
    )
    done = pl.concat([ops, deeds])
    usual = done.join(side.usual, on=list(CELL), how="semi").select("name", "shapes")
    own = done.join(side.slow, on=list(CELL), how="semi")
    return bool(
        len(own.join(pl.concat([usual, theirs]), on=["name", "shapes"], how="anti", nulls_equal=True))
    )


def _fisher(a: tuple[int, int], b: tuple[int, int]) -> float:
    """The chance of counts at least as unequal, if slow steps were dealt out to the two at random."""
    slow, steps = a[0] + b[0], a[1] + b[1]

    def likely(ours: int) -> float:
        return math.comb(a[1], ours) * math.comb(b[1], slow - ours) / math.comb(steps, slow)

    seen = likely(a[0])
    possible = range(max(0, slow - b[1]), min(slow, a[1]) + 1)
    return min(1.0, sum(each for each in map(likely, possible) if each <= seen * (1 + 1e-9)))
