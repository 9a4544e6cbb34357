"""Which ranks the others wait for, how often, and what makes them late.

A rank is late in a step if it is so by 2 % of a step, and by more than ranks vary anyhow. What it costs is what the step
would have saved had it come with the next one. Three kinds:
always: late in four of five steps, which is a slower worker or more work; sometimes: late now and then, while the work is
the same; data-dependent: the late ones had more to compute (more blocks in their kernels), most often in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import polars as pl

from stepscope.across.lateness import COLLECTIVE, others_median, spread_ns

ALWAYS, SOMETIMES, DATA, UNCLEAR = "always", "sometimes", "data-dependent", "unclear"
LATE_SHARE = 0.025
TURNS_SHARE = 0.05  # many ranks in turn: some are always last by chance
MOST_OF_IT = 0.5
NEARLY_ALL = 0.8
ENOUGH_STEPS = 3
_LEAST_SHARE = 0.02
_BEYOND_SPREAD = 2.5
_GREW_WITH = 0.5  # of the growth in time, growth in blocks that explains it
_SLOWER_CLOCK = 0.95


@dataclass(frozen=True)
class Straggler:
    """Who is waited for; `share` is of the steps' time, `steps_late` of `steps` are those in which it was late.

    `rank` is the worst of `ranks`. `cause` is the part of the account that makes it late: `parts` has for each part what it took longer
    than on the other ranks, per late step. Instead of compute it is `work` if there was more of it, `clock` if the GPU ran slower.
    """

    rank: int
    ranks: tuple[int, ...]
    kind: str
    late_ns: int
    late_ns_per_step: int
    share: float
    steps_late: int
    steps: int
    cause: str | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    work_ratio: float | None = None

    @property
    def always(self) -> bool:
        """Late in nearly every step, which is more work or a slower machine, and not chance."""
        return self.kind == ALWAYS


@dataclass(frozen=True)
class _Found:
    """Who was late when: what each step lost, and what the steps took."""

    late: dict[int, dict[int, int]]  # by step and rank, only those that were
    longest: dict[int, dict[int, int]]  # by step and rank, all that are above 0
    total_ns: int
    steps: int

    def saved(self, ranks: Collection[int]) -> int:
        """What all steps would have saved had these ranks come with the last of the others."""
        lost = 0
        for by_rank in self.longest.values():
            mine = max((ns for rank, ns in by_rank.items() if rank in ranks), default=0)
            others = max((ns for rank, ns in by_rank.items() if rank not in ranks), default=0)
            lost += max(0, mine - others)
        return lost

    @property
    def lost(self) -> int:
        """What all steps lost by the last one, whoever it was."""
        return sum(max(by_rank.values(), default=0) for by_rank in self.longest.values())

    def steps_of(self, rank: int) -> list[int]:
        """The steps in which the rank was late."""
        return [step for step, by_rank in self.late.items() if rank in by_rank]

    @property
    def ranks(self) -> list[int]:
        """All that were ever late."""
        return sorted({rank for by_rank in self.late.values() for rank in by_rank})


def straggler(
    late: pl.DataFrame,
    steps: pl.DataFrame,
    parts: pl.DataFrame,
    clocks_mhz: Mapping[int, float | None] | None = None,
) -> Straggler | None:
    """Who the others wait for, if that is much of the steps' time. `late` is of `lateness`, the others of `pace`."""
    found = _found(late)
    if not found.total_ns or not found.ranks:
        return None
    about = _About(steps, parts, clocks_mhz or {})
    return _always(found, about) or _one(found, about) or _in_turn(found, about)


def _found(late: pl.DataFrame) -> _Found:
    if late.is_empty():
        return _Found({}, {}, 0, 0)
    typical = late.group_by("step").agg(pl.col("dur_ns").median())["dur_ns"]
    enough = max(_LEAST_SHARE * float(typical.median()), _BEYOND_SPREAD * spread_ns(late))  # type: ignore[arg-type]
    longest: dict[int, dict[int, int]] = {int(step): {} for step in late["step"].unique().sort()}
    for step, rank, ns in late.filter(pl.col("late_ns") > 0).select("step", "rank", "late_ns").iter_rows():
        longest[step][rank] = ns
    clearly = {
        step: {rank: ns for rank, ns in by_rank.items() if ns > enough} for step, by_rank in longest.items()
    }
    return _Found(clearly, longest, int(typical.sum()), len(typical))


def _always(found: _Found, about: _About) -> Straggler | None:
    wanted = NEARLY_ALL * found.steps
    ranks = [rank for rank in found.ranks if len(found.steps_of(rank)) >= wanted]
    if not ranks or found.saved(ranks) < LATE_SHARE * found.total_ns:
        return None
    worst = max(ranks, key=lambda rank: sum(by_rank.get(rank, 0) for by_rank in found.late.values()))
    kind = ALWAYS if found.steps >= ENOUGH_STEPS else UNCLEAR
    return _told(found, about, worst, ranks, kind, found.saved(ranks))


def _one(found: _Found, about: _About) -> Straggler | None:
    """One rank that loses most of what is lost, though not in every step."""
    worst = max(found.ranks, key=lambda rank: (found.saved([rank]), -rank))
    saved = found.saved([worst])
    if saved < LATE_SHARE * found.total_ns or saved < MOST_OF_IT * found.lost:
        return None
    grew = about.had_more_work({(step, worst) for step in found.steps_of(worst)})
    kind = UNCLEAR if found.steps < ENOUGH_STEPS else DATA if grew else SOMETIMES
    return _told(found, about, worst, [worst], kind, saved)


def _in_turn(found: _Found, about: _About) -> Straggler | None:
    """Another rank in each step: uneven batches if they had more to compute, else chance."""
    if found.lost < TURNS_SHARE * found.total_ns or found.steps < ENOUGH_STEPS:
        return None
    last = {
        (step, max(by_rank, key=lambda rank: by_rank[rank]))
        for step, by_rank in found.late.items()
        if by_rank
    }
    if not last:
        return None
    kind = DATA if about.had_more_work(last) else SOMETIMES
    cost: dict[int, int] = {}
    for step, rank in last:
        cost[rank] = cost.get(rank, 0) + found.late[step][rank]
    ranks = sorted(cost, key=lambda rank: (-cost[rank], rank))
    return _told(found, about, ranks[0], ranks, kind, found.lost)


def _told(
    found: _Found, about: _About, worst: int, ranks: Collection[int], kind: str, saved: int
) -> Straggler:
    late_at = {(step, rank) for rank in ranks for step in found.steps_of(rank)}
    parts = about.longer(late_at)
    return Straggler(
        rank=worst,
        ranks=tuple(sorted(ranks)),
        kind=kind,
        late_ns=saved,
        late_ns_per_step=saved // found.steps,
        share=saved / found.total_ns,
        steps_late=len(found.steps_of(worst)),
        steps=found.steps,
        cause=about.cause(parts, late_at, worst),
        parts=parts,
        work_ratio=about.work_ratio(worst),
    )


class _About:
    """What ranks did in steps, against what the others did."""

    def __init__(
        self, steps: pl.DataFrame, parts: pl.DataFrame, clocks_mhz: Mapping[int, float | None]
    ) -> None:
        self._blocks = _against_others(steps.select("rank", "step", part=pl.lit("blocks"), ns="blocks"))
        self._parts = _against_others(_filled(steps, parts))
        self._clocks = clocks_mhz

    def longer(self, at: Collection[tuple[int, int]]) -> dict[str, int]:
        """For each part of the account what it took longer than on the others, per (step, rank); the most first."""
        sums: dict[str, float] = {}
        for (step, rank, part), (mine, others) in self._parts.items():
            if (step, rank) in at:
                sums[part] = sums.get(part, 0.0) + mine - others
        ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
        return {
            part: round(ns / len(at)) for part, ns in ranked if part not in COLLECTIVE and round(ns / len(at))
        }

    def had_more_work(self, at: Collection[tuple[int, int]]) -> bool:
        """Whether more blocks explain the time that computing took longer there."""
        blocks = sum(self._growth(self._blocks, step, rank, "blocks") for step, rank in at)
        time = sum(self._growth(self._parts, step, rank, "compute") for step, rank in at)
        return blocks > 0 and time > 0 and blocks >= _GREW_WITH * time

    def work_ratio(self, rank: int) -> float | None:
        """Blocks of the rank's kernels to those of the others, over all steps."""
        pairs = [pair for (_, number, _), pair in self._blocks.items() if number == rank]
        others = sum(typical for _, typical in pairs)
        return sum(mine for mine, _ in pairs) / others if others else None

    def cause(self, parts: Mapping[str, int], at: Collection[tuple[int, int]], worst: int) -> str | None:
        """The part that took longer most of all, told more exactly if it is compute."""
        first = next((part for part, ns in parts.items() if ns > 0), None)
        if first != "compute":
            return first
        if self.had_more_work(at):
            return "work"
        mine = self._clocks.get(worst)
        others = sorted(mhz for rank, mhz in self._clocks.items() if mhz is not None and rank != worst)
        slower = mine is not None and others and mine < _SLOWER_CLOCK * others[len(others) // 2]
        return "clock" if slower else "compute"

    @staticmethod
    def _growth(
        table: Mapping[tuple[int, int, str], tuple[float, float]], step: int, rank: int, part: str
    ) -> float:
        mine, others = table.get((step, rank, part), (0.0, 0.0))
        return mine / others - 1 if others else 0.0


def _filled(steps: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Parts with a 0 where a rank spent no time in one that others have."""
    names = parts.select("part").unique()
    every = steps.select("rank", "step").join(names, how="cross")
    return every.join(parts, on=["rank", "step", "part"], how="left").with_columns(pl.col("ns").fill_null(0))


def _against_others(rows: pl.DataFrame) -> dict[tuple[int, int, str], tuple[float, float]]:
    """(step, rank, part) to its figure and the median of the other ranks'."""
    found: dict[tuple[int, int, str], tuple[float, float]] = {}
    for group in rows.drop_nulls("ns").partition_by("step", "part"):
        values = group["ns"].to_list()
        keys = zip(group["step"], group["rank"], group["part"], strict=True)
        pairs = zip(values, others_median(values), strict=True)
        found.update(zip(keys, pairs, strict=True))
    return found
