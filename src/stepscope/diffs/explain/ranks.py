"""Ranks that changed: where one of many is slower, the mean over all hardly shows it, and the others show only that they wait.

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
from stepscope.diffs.noise.judge import LEVEL, Ground, Measured, judge, measured
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, Speeds, clock_of

# A rank that is late makes the others wait in these: they are never the cause.
WAITS = ("collective", "host_collective", "unrecorded")
# Of the step's change: what a rank's part must be worth to explain any of it.
WORTH = 0.1
# Looked at closely: so many of the ranks whose parts changed most.
MOST_RANKS = 16
# Of a rank's change: by so much it must stand out, where the part changed on all ranks together.
STANDS_OUT = 0.5
NAMES = 2
_BY_OP = {"compute": f"{DEVICE}_ns", "host_compute": f"{HOST}_ns"}


@dataclass(frozen=True)
class RankChange:
    """A part that changed on some ranks; `names` are what most of it went to there, the largest first."""

    part: str
    ranks: tuple[int, ...]
    of_ranks: int
    difference: float  # mean over these ranks
    noise: float | None
    names: tuple[Row, ...]


def rank_changes(ground: Ground, step: Row, parts: Sequence[Row]) -> list[RankChange]:
    """Of a step that changed for sure, where both runs have the same ranks; the largest first."""
    numbers = [sorted(side.cells["rank"].unique()) for side in (ground.a, ground.b)]
    if not step.significant or numbers[0] != numbers[1] or len(numbers[0]) < 2:
        return []
    told = {row.name for row in parts if row.significant}
    candidates = _candidates(ground, step, told)
    found: dict[str, list[tuple[int, Measured, tuple[Row, ...]]]] = {}
    for rank, wanted in candidates.items():
        alone = _alone(ground, rank)
        rows = measured(
            alone,
            "parts",
            ["part"],
            "ns",
            EXACT,
            lambda key: clock_of(str(key[0])),
            lambda key, _, runs=alone.runs: runs.of_part(str(key[0])),  # type: ignore[misc]
        )
        judge(alone, rows, LEVEL / len(numbers[0]))
        for each in rows:
            if each.row.significant and each.row.name in wanted:
                found.setdefault(each.row.name, []).append((rank, each, _names(alone, each.row)))
    changes = [_change(part, members, len(numbers[0])) for part, members in found.items()]
    return sorted(changes, key=lambda change: -abs(change.difference))


def _candidates(ground: Ground, step: Row, told: set[str]) -> dict[int, set[str]]:
    """By rank the parts that moved as the step did, by enough of it, and that the mean over ranks does not tell as well."""
    means = [
        side.parts.group_by("rank", "part").agg(pl.col("ns").sum())
        .join(side.cells.group_by("rank").agg(steps=pl.len()), on="rank")
        .select("rank", "part", mean=pl.col("ns") / pl.col("steps"))
        for side in (ground.a, ground.b)
    ]  # fmt: skip
    both = (
        means[0]
        .join(means[1], on=["rank", "part"], how="full", coalesce=True, suffix="_b")
        .with_columns(more=pl.col("mean_b").fill_null(0) - pl.col("mean").fill_null(0))
    )
    enough = both.filter(
        ~pl.col("part").is_in(WAITS), pl.col("more") / step.difference >= WORTH
    ).sort(pl.col("more").abs(), "rank", descending=[True, False])  # fmt: skip
    usual = dict(both.group_by("part").agg(pl.col("more").median()).iter_rows())
    found: dict[int, set[str]] = {}
    for rank, part, more in enough.select("rank", "part", "more").iter_rows():
        stands_out = abs(more - usual[part]) >= STANDS_OUT * abs(more)
        if (part not in told or stands_out) and (rank in found or len(found) < MOST_RANKS):
            found.setdefault(rank, set()).add(part)
    return found


def _alone(ground: Ground, rank: int) -> Ground:
    """What is known of one rank, at the speeds that its own steps had."""
    sides, factors = [], []
    for side, speeds in ((ground.a, ground.speeds.a), (ground.b, ground.speeds.b)):
        is_rank = side.cells["rank"] == rank
        places = is_rank.arg_true().to_list()
        factors.append({clock: [values[place] for place in places] for clock, values in speeds.items()})
        sides.append(
            Samples(**{name: frame.filter(pl.col("rank") == rank) for name, frame in vars(side).items()})
        )
    own = Speeds(factors[0], factors[1], ground.speeds.found, ground.speeds.scatter)
    return Ground(sides[0], sides[1], own, ground.is_exact)


def _names(alone: Ground, part: Row) -> tuple[Row, ...]:
    """What the part's change went to: ops where work was done, else what the account names."""
    value = _BY_OP.get(part.name)
    if value is not None:
        rows = measured(alone, "ops", ["name"], value, EXACT, lambda _: clock_of(part.name))
    else:
        only = [
            Samples(**{**vars(side), "names": side.names.filter(pl.col("part") == part.name)})
            for side in (alone.a, alone.b)
        ]
        ground = Ground(only[0], only[1], alone.speeds, alone.is_exact)
        rows = measured(ground, "names", ["name"], "ns", EXACT, lambda _: clock_of(part.name))
    same_way = [each.row for each in rows if each.row.difference * part.difference > 0]
    return tuple(same_way[:NAMES])


def _change(part: str, members: Sequence[tuple[int, Measured, tuple[Row, ...]]], of_ranks: int) -> RankChange:
    rows = [each.row for _, each, _ in members]
    largest = max(members, key=lambda member: abs(member[1].row.difference))
    return RankChange(
        part=part,
        ranks=tuple(sorted(rank for rank, _, _ in members)),
        of_ranks=of_ranks,
        difference=sum(row.difference for row in rows) / len(rows),
        noise=largest[1].row.noise,
        names=largest[2],
    )
