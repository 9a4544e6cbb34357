"""Ranks that changed: where one of many is slower, the mean over all hardly shows it, and the others only show that they wait.

Each rank of B is compared with the rank of that number in A, against the spread of its own steps: by the parts of its own work,
not by its waiting for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.diffs.data.match import EXACT
from stepscope.diffs.data.model import Row
from stepscope.diffs.data.samples import Samples
from stepscope.diffs.noise.judge import Ground, Measure, Measured, judge_rows, measure_rows
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, Speeds, find_clock
from stepscope.registers.policy.diffs import CAUSE_OF_CHANGE, DIFF_RANK_NAMES, DIFF_RANKS, RANK_STANDS_OUT
from stepscope.statistics.significance import OF_FAMILY
from stepscope.trace.frames import conform

# A rank that is late makes the others wait in these: they are never the cause.
WAITS = ("collective", "host_collective", "unrecorded")
_BY_OP = {"compute": f"{DEVICE}_ns", "host_compute": f"{HOST}_ns"}
# How much more a part takes per step on a rank of B than on that rank of A.
CHANGES = {"rank": pl.Int32, "part": pl.String, "more": pl.Float64}


@dataclass(frozen=True)
class RankChange:
    """A part that changed on some ranks; `names` are what most of it went to there, the largest first."""

    part: str
    ranks: tuple[int, ...]
    of_ranks: int
    difference: float  # mean over these ranks
    noise: float | None
    names: tuple[Row, ...]


@dataclass(frozen=True)
class _Member:
    """One rank's share in a change."""

    rank: int
    row: Row
    names: tuple[Row, ...]


def find_rank_changes(ground: Ground, step: Row, parts: Sequence[Row]) -> list[RankChange]:
    """Of a step that changed significantly, where both runs have the same ranks; the largest first."""
    numbers = [sorted(side.cells["rank"].unique()) for side in (ground.a, ground.b)]
    if not step.significant or numbers[0] != numbers[1] or len(numbers[0]) < 2:
        return []
    significant = {row.name for row in parts if row.significant}
    members: dict[str, list[_Member]] = {}
    for rank, wanted in _choose_candidates(ground, step, significant).items():
        alone = _isolate_rank(ground, rank)
        for each in _measure_parts(alone, OF_FAMILY / len(numbers[0])):
            if each.row.significant and each.row.name in wanted:
                member = _Member(rank, each.row, _find_names(alone, each.row))
                members.setdefault(each.row.name, []).append(member)
    changes = [_make_change(part, each, len(numbers[0])) for part, each in members.items()]
    return sorted(changes, key=lambda change: -abs(change.difference))


def _measure_parts(alone: Ground, level: float) -> list[Measured]:
    rows = measure_rows(
        alone,
        Measure(
            "parts",
            ["part"],
            "ns",
            EXACT,
            lambda key: find_clock(str(key[0])),
            lambda key, _: alone.runs.of_part(str(key[0])),
        ),
    )
    judge_rows(alone, rows, level)
    return rows


def _choose_candidates(ground: Ground, step: Row, significant: set[str]) -> dict[int, set[str]]:
    """By rank the parts that moved as the step did, by enough of it, and that the mean over ranks does not show as well."""
    changes = _measure_changes(ground)
    enough = changes.filter(
        ~pl.col("part").is_in(WAITS), pl.col("more") / step.difference >= CAUSE_OF_CHANGE
    ).sort(pl.col("more").abs(), "rank", descending=[True, False])  # fmt: skip
    usual = dict(changes.group_by("part").agg(pl.col("more").median()).iter_rows())
    candidates: dict[int, set[str]] = {}
    for rank, part, more in enough.iter_rows():
        stands_out = abs(more - usual[part]) >= RANK_STANDS_OUT * abs(more)
        has_room = rank in candidates or len(candidates) < DIFF_RANKS
        if (part not in significant or stands_out) and has_room:
            candidates.setdefault(rank, set()).add(part)
    return candidates


def _measure_changes(ground: Ground) -> pl.DataFrame:
    """CHANGES of all ranks and parts."""
    means = [
        side.parts.group_by("rank", "part").agg(pl.col("ns").sum())
        .join(side.cells.group_by("rank").agg(steps=pl.len()), on="rank")
        .select("rank", "part", mean=pl.col("ns") / pl.col("steps"))
        for side in (ground.a, ground.b)
    ]  # fmt: skip
    both = means[0].join(means[1], on=["rank", "part"], how="full", coalesce=True, suffix="_b")
    more = pl.col("mean_b").fill_null(0) - pl.col("mean").fill_null(0)
    return conform(both.with_columns(more=more), CHANGES)


def _isolate_rank(ground: Ground, rank: int) -> Ground:
    """What is known of one rank, at the speeds that its own steps had."""
    sides, factors = [], []
    for side, speeds in ((ground.a, ground.speeds.a), (ground.b, ground.speeds.b)):
        places = (side.cells["rank"] == rank).arg_true().to_list()
        factors.append({clock: [values[place] for place in places] for clock, values in speeds.items()})
        sides.append(
            Samples(**{name: frame.filter(pl.col("rank") == rank) for name, frame in vars(side).items()})
        )
    own = Speeds(factors[0], factors[1], ground.speeds.changes, ground.speeds.scatter)
    return Ground(sides[0], sides[1], own, ground.is_exact)


def _find_names(alone: Ground, part: Row) -> tuple[Row, ...]:
    """What the part's change went to: ops where work was done, else the names that the account charges."""
    value = _BY_OP.get(part.name)
    clock = find_clock(part.name)
    if value is not None:
        rows = measure_rows(alone, Measure("ops", ["name"], value, EXACT, lambda _: clock))
    else:
        only = [
            Samples(**{**vars(side), "names": side.names.filter(pl.col("part") == part.name)})
            for side in (alone.a, alone.b)
        ]
        ground = Ground(only[0], only[1], alone.speeds, alone.is_exact)
        rows = measure_rows(ground, Measure("names", ["name"], "ns", EXACT, lambda _: clock))
    same_way = [each.row for each in rows if each.row.difference * part.difference > 0]
    return tuple(same_way[:DIFF_RANK_NAMES])


def _make_change(part: str, members: Sequence[_Member], of_ranks: int) -> RankChange:
    largest = max(members, key=lambda member: abs(member.row.difference))
    return RankChange(
        part=part,
        ranks=tuple(sorted(member.rank for member in members)),
        of_ranks=of_ranks,
        difference=sum(member.row.difference for member in members) / len(members),
        noise=largest.row.noise,
        names=largest.names,
    )
