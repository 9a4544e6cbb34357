"""Occasional slow steps: a checkpoint, an evaluation, a log. They dominate the mean, and the median does not show them.

A step is slow by `stepscope.statistics.slow_steps`, among those of its rank, and occasional if at most a quarter are. It is significant that
one run has more of them if the counts differ by Fisher's exact test, or if the slow steps do something that no other step of either
run does: call an op, write a file, compile. A step that was merely interrupted does what all others do, for longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.diffs.data.model import Tail
from stepscope.diffs.data.samples import CELL, Samples
from stepscope.registers.levels import RARE_STEPS
from stepscope.statistics.significance import OF_FAMILY, fisher_p_value
from stepscope.statistics.slow_steps import is_slow
from stepscope.trace.frames import conform, take_mean

# Parts whose names say what a step did, not how long it was held up.
_DEEDS = ("io", "compile")
_IDLE_AND_UNSAID = ("unexplained", "unrecorded")


# Steps, and the usual step of their rank.
STEPS = {**CELL, "ns": pl.Int64, "usual": pl.Float64}
# By part or by name, what a slow step takes on average, and how much more than a usual one.
EXCESS = {"subject": pl.String, "ns": pl.Float64, "more": pl.Float64}
# What steps do: ops with their shapes, and names with their parts.
ACTIONS = {**CELL, "name": pl.String, "detail": pl.String}


@dataclass(frozen=True)
class SlowSteps:
    """The slow and the usual steps of a run (STEPS), and the excess of the slow ones per step of the run."""

    slow: pl.DataFrame
    usual: pl.DataFrame
    excess_ns: float
    times: float  # duration relative to the usual step, on average

    @property
    def count(self) -> int:
        """Slow steps. Ranks wait for each other: a step that is slow on several of them is one."""
        return _count_steps(self.slow)

    @property
    def steps(self) -> int:
        """All that count."""
        return _count_steps(pl.concat([self.slow, self.usual]))


def find_tail(a: Samples, b: Samples) -> Tail | None:
    """What differs in the slow steps; None where neither run has any."""
    sides = _split_steps(a), _split_steps(b)
    if not any(len(side.slow) for side in sides):
        return None
    more = 1 if sides[1].excess_ns >= sides[0].excess_ns else 0
    samples, other = (a, b)[more], (b, a)[more]
    part, name = _find_cause(samples, sides[more])
    p_value = fisher_p_value(*((side.count, side.steps) for side in sides))
    only_one = not len(sides[1 - more].slow)
    acts_differently = only_one and _do_slow_steps_act_differently(samples, sides[more], other)
    return Tail(
        a_slow=sides[0].count,
        b_slow=sides[1].count,
        a_steps=sides[0].steps,
        b_steps=sides[1].steps,
        a_excess_ns=round(sides[0].excess_ns, 1),
        b_excess_ns=round(sides[1].excess_ns, 1),
        times=round(sides[more].times, 2),
        part=part,
        name=name,
        significant=p_value < OF_FAMILY or acts_differently,
    )


def _count_steps(rows: pl.DataFrame) -> int:
    return rows.select("recording", "step").n_unique()


def _split_steps(samples: Samples) -> SlowSteps:
    by_rank = ["recording", "rank"]
    cells = samples.cells.with_columns(usual=pl.col("ns").median().over(by_rank))
    slow = conform(cells.filter(is_slow(pl.col("ns"), by_rank)), STEPS)
    if len(slow) > RARE_STEPS * len(cells):
        slow = slow.clear()
    usual = conform(cells.join(slow, on=list(CELL), how="anti"), STEPS)
    excess = float((slow["ns"] - slow["usual"]).sum()) / max(1, len(cells))
    return SlowSteps(slow, usual, excess, take_mean(slow["ns"] / slow["usual"], 1.0))


def _find_cause(samples: Samples, side: SlowSteps) -> tuple[str | None, str | None]:
    """The part, and the name in it, that has most of the excess of the slow steps."""
    parts = _measure_excess(samples.parts, side, "part")
    parts = parts.filter(~pl.col("subject").is_in(_IDLE_AND_UNSAID))
    if not len(parts):
        return None, None
    part = str(parts["subject"][0])
    names = _measure_excess(samples.names.filter(pl.col("part") == part), side, "name")
    return part, str(names["subject"][0]) if len(names) else None


def _measure_excess(rows: pl.DataFrame, side: SlowSteps, key: str) -> pl.DataFrame:
    """EXCESS by the key, the most first; only where there is any."""
    sums = [
        rows.join(cells, on=list(CELL), how="semi")
        .group_by(subject=key, maintain_order=True)
        .agg(ns=pl.col("ns").sum() / max(1, len(cells)))
        for cells in (side.slow, side.usual)
    ]
    both = sums[0].join(sums[1], on="subject", how="left", suffix="_usual", nulls_equal=True)
    excess = conform(both.with_columns(more=pl.col("ns") - pl.col("ns_usual").fill_null(0)), EXCESS)
    return excess.filter(pl.col("more") > 0).sort("more", "subject", descending=[True, False])


def _do_slow_steps_act_differently(samples: Samples, side: SlowSteps, other: Samples) -> bool:
    """Whether the slow steps have ops, files or compilations that no other step has."""
    own = _list_actions(samples, pl.col("part").is_in(_DEEDS))
    theirs = _list_actions(other, pl.lit(True))
    usual = own.join(side.usual, on=list(CELL), how="semi")
    known = pl.concat([usual, theirs]).select("name", "detail")
    slow = own.join(side.slow, on=list(CELL), how="semi")
    return bool(len(slow.join(known, on=["name", "detail"], how="anti", nulls_equal=True)))


def _list_actions(samples: Samples, wanted: pl.Expr) -> pl.DataFrame:
    """ACTIONS: the ops that were called, and the wanted names."""
    ops = samples.ops.filter(pl.col("calls") > 0).with_columns(detail="shapes")
    names = samples.names.filter(wanted).with_columns(detail="part")
    return pl.concat([conform(ops, ACTIONS), conform(names, ACTIONS)])
