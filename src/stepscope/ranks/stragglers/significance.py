"""Which rank was late when, what that cost, and whether it is within noise.

Three questions with three bounds. *Clearly late* in a step: by more than any of the healthy ranks would be once in twenty
steps; *late*: by more than a given healthy rank would be once in twenty steps; both by at least what is worth showing. *More
often than random*: if the clearly late rank were drawn anew in each step, no rank would be drawn so often, but once in ten jobs.
No rank is named for less than the job's own jitter: what the mean step is uncertain by, without the lateness itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from math import sqrt
from statistics import median

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.stragglers.lateness import spread_ns
from stepscope.registers.levels import (
    AS_LATE,
    FEWEST_STEPS,
    MEDIAN_ERROR,
    SIGNIFICANCE,
    TURNS_SIGNIFICANCE,
)
from stepscope.registers.policy.findings import WORTH_SHOWING
from stepscope.statistics.noise import sigma_of
from stepscope.statistics.significance import sigmas_above
from stepscope.trace.frames import take_median


@dataclass(frozen=True)
class LateSteps:
    """`by_step`: lateness of the ranks that were behind the others at all; `by_rank`: of every step of a rank; `lengths` of the steps."""

    by_step: dict[int, dict[int, int]]
    by_rank: dict[int, list[int]]
    lengths: dict[int, int]
    typical_ns: (
        float  # of a step: one that takes long for another reason must not hide what is lost in the others
    )
    noise_ns: float
    jitter_ns: float = 0.0  # of the mean step

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.by_step)

    @property
    def total_ns(self) -> int:
        """The time of all of them."""
        return sum(self.lengths.values())

    @property
    def least_ns(self) -> float:
        """What must be lost, over all steps, where more work shows why."""
        return WORTH_SHOWING * self.typical_ns * self.steps

    @property
    def worth_ns(self) -> float:
        """What must be lost where only time shows it: also more than the job varies by anyway."""
        return max(self.least_ns, self.jitter_ns * self.steps)

    @cached_property
    def late_ns(self) -> float:
        """From here on a rank is late in a step."""
        return max(WORTH_SHOWING * self.typical_ns, sigmas_above(1) * self.noise_ns)

    @cached_property
    def clearly_ns(self) -> float:
        """From here on it is so by more than noise makes the last of them."""
        return max(WORTH_SHOWING * self.typical_ns, self.noise_of_last_ns)

    @cached_property
    def noise_of_last_ns(self) -> float:
        """How late the last of healthy ranks may be."""
        return sigmas_above(len(self.by_rank)) * self.noise_ns

    @cached_property
    def _clearly(self) -> dict[int, list[int]]:
        """By step the ranks that were clearly late, of steps that have some."""
        found = {
            step: [rank for rank, ns in ranks.items() if ns > self.clearly_ns]
            for step, ranks in self.by_step.items()
        }
        return {step: ranks for step, ranks in found.items() if ranks}

    @cached_property
    def last(self) -> dict[int, int]:
        """The last rank of each step in which some were behind."""
        return {
            step: max(ranks, key=lambda rank: (ranks[rank], -rank))
            for step, ranks in self.by_step.items()
            if ranks
        }

    @cached_property
    def alone(self) -> dict[int, int]:
        """By rank what all steps would have saved had it come with the next one."""
        lost: dict[int, int] = {}
        for step, last in self.last.items():
            others = max((ns for rank, ns in self.by_step[step].items() if rank != last), default=0)
            lost[last] = lost.get(last, 0) + self.by_step[step][last] - others
        return lost

    def saved(self, ranks: Collection[int]) -> int:
        """What all steps would have saved had these ranks come with the last of the others."""
        return sum(self._saved_in(by_rank, set(ranks)) for by_rank in self.by_step.values())

    def _saved_in(self, by_rank: Mapping[int, int], ranks: Collection[int]) -> int:
        mine = max((ns for rank, ns in by_rank.items() if rank in ranks), default=0)
        others = max((ns for rank, ns in by_rank.items() if rank not in ranks), default=0)
        return max(0, mine - others)

    def saved_usually(self, ranks: Collection[int]) -> float:
        """`saved` as a share of the time of usual steps.

        In a few steps a rank that is always late may be so by far more, or another rank be late too: for a reason of its own, most
        often another program on its core.
        """
        saved = {step: self._saved_in(by_rank, set(ranks)) for step, by_rank in self.by_step.items()}
        middle = median(saved.values())
        spread = sigmas_above(self.steps) * sigma_of([abs(each - middle) for each in saved.values()])
        usual = [step for step, each in saved.items() if abs(each - middle) <= spread]
        return sum(saved[step] for step in usual) / max(1, sum(self.lengths[step] for step in usual))

    def lost(self, beyond_ns: float = 0.0) -> float:
        """What all steps lost by the last rank, whichever it was, as far as it was more than this."""
        return sum(max(0.0, self.by_step[step][rank] - beyond_ns) for step, rank in self.last.items())

    def late_in(self, rank: int) -> list[int]:
        """The steps in which the rank was late."""
        return [step for step, ranks in self.by_step.items() if ranks.get(rank, 0) > self.late_ns]

    def clearly_in(self, rank: int) -> list[int]:
        """The steps in which it was clearly so."""
        return [step for step, ranks in self._clearly.items() if rank in ranks]

    def share_late(self, rank: int) -> float:
        """Of its steps, those in which it was late."""
        return len(self.late_in(rank)) / max(1, len(self.by_rank[rank]))

    def steadily(self, rank: int) -> bool:
        """Whether it is late in its typical step, by more than noise explains for this number of steps and ranks."""
        mine = self.by_rank[rank]
        error = MEDIAN_ERROR * self.noise_ns / sqrt(len(mine))
        return median(mine) > sigmas_above(len(self.by_rank)) * error

    def often_last(self, rank: int) -> bool:
        """Whether it was the last in more steps than any rank would be if that were drawn anew in each."""
        often = sum(last == rank for last in self.last.values())
        return self._chance_of(often, [1] * self.steps) < SIGNIFICANCE

    def more_often_than_chance(self, rank: int) -> bool:
        """Whether it was late in more steps than noise explains for any rank; only steps in which a rank was as late count."""
        mine = [self.by_step[step][rank] for step in self.clearly_in(rank)]
        if not mine:
            return False
        as_late = max(self.clearly_ns, AS_LATE * median(mine))
        counts = [sum(ns > as_late for ns in ranks.values()) for ranks in self.by_step.values()]
        return self._chance_of(sum(ns > as_late for ns in mine), counts) < TURNS_SIGNIFICANCE

    @cached_property
    def too_few_to_tell(self) -> bool:
        """Whether even a rank that was late whenever any rank was might be within noise."""
        counts = [len(ranks) for ranks in self._clearly.values()]
        return self._chance_of(len(self._clearly), counts) >= TURNS_SIGNIFICANCE

    def _chance_of(self, often: int, counts: Sequence[int]) -> float:
        """That some rank is among the late ones in at least `often` steps; `counts` are how many were late in each."""
        ranks = len(self.by_rank)
        chances = [1.0] + [0.0] * often  # of having been drawn 0, 1, … and at least `often` times
        for late in counts:
            share = late / ranks
            for count in range(often, 0, -1):
                stays = chances[count] if count == often else chances[count] * (1 - share)
                chances[count] = stays + chances[count - 1] * share
            chances[0] *= 1 - share if often else 1.0
        return min(1.0, ranks * chances[often])


def late_steps(late: pl.DataFrame) -> LateSteps:
    """The rows of `lateness`, sorted out."""
    typical = late.group_by("step").agg(pl.col("dur_ns").median()).sort("step")
    lengths = {int(step): int(ns) for step, ns in typical.iter_rows()}
    by_step: dict[int, dict[int, int]] = {step: {} for step in lengths}
    by_rank: dict[int, list[int]] = {}
    for step, rank, ns in late.select("step", "rank", "late_ns").iter_rows():
        by_rank.setdefault(rank, []).append(ns)
        if ns > 0:
            by_step[step][rank] = ns
    middle = take_median(typical["dur_ns"])
    return LateSteps(by_step, by_rank, lengths, middle, spread_ns(late), _find_jitter(late))


def _find_jitter(late: pl.DataFrame) -> float:
    """What noise alone makes the mean step longer by, in one job of twenty: by the steps as they were without their last rank's lateness."""
    own = late.group_by("step").agg(ns=pl.col("dur_ns").median() - pl.col("late_ns").max().clip(0))["ns"]
    if len(own) < FEWEST_STEPS:
        return 0.0
    middle = take_median(own)
    return sigmas_above(1) * sigma_of([abs(each - middle) for each in own]) / sqrt(len(own))
