"""Problems of the recordings that only a comparison of the ranks shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.profiles.ranks import spans
from stepscope.ranks.compare import Compared
from stepscope.reports.model.report import Problem
from stepscope.reports.problems import reported
from stepscope.trace.problems import problem


def unequal(found: Compared) -> list[Problem]:
    """Ranks with other numbers of calls or steps than most, and groups that cannot be distinguished."""
    return [*_calls(found), *_steps(found), *_groups(found), *_unmatched(found)]


def nothing_recorded(ranks: int, world: int) -> Problem:
    """Ranks of one job must communicate; a profile in which they never do does not show that none of them waits."""
    return reported(
        problem(
            "no-collectives",
            f"{ranks:,} ranks were loaded, and none of their events is a collective.",
            case="" if world > 1 else "separate-jobs",
            count=ranks,
        )
    )


def _unmatched(found: Compared) -> Iterator[Problem]:
    """Collectives in which ranks wait for each other, and yet none that two ranks have."""
    calling = sorted(look.rank for look in found.looks if len(look.lanes))
    silent = sorted(look.rank for look in found.looks if look.lanes.is_empty())
    if found.met.count or found.met.ambiguous or not calling:
        return
    detail = (
        f"Ranks {spans(calling)} have collectives in their steps, ranks {spans(silent)} none: they have none at all, or theirs run "
        "after the steps that started them."
        if silent
        else f"Ranks {spans(calling)} have collectives, and none with the group, number or step of another rank's."
    )
    yield reported(problem("unmatched-collectives", detail, count=len(silent) or len(calling)))


def _calls(found: Compared) -> Iterator[Problem]:
    if found.unusual.is_empty():
        return
    rows = found.unusual.join(found.met.lanes, on="lane", how="left").sort(
        "ranks", "example", descending=[True, False]
    )
    row = rows.row(0, named=True)
    yield reported(
        problem(
            "unequal-collectives",
            f"{_who(row)} made {row['calls']:,} calls of {_what(row)}, most ranks another number.",
            count=int(rows["ranks"].sum()),
        )
    )


def _who(row: dict[str, Any]) -> str:
    more = row["ranks"] - 1
    return f"Rank {row['example']}" + (f" and {more} more" if more else "")


def _what(row: dict[str, Any]) -> str:
    return f"{row['name'] or 'a collective'}" + (f" in group {row['group']}" if row["group"] else "")


def _steps(found: Compared) -> Iterator[Problem]:
    counts = found.late.group_by("rank").agg(pl.len()).sort("rank")
    usual = max(counts["len"].mode().to_list(), default=0)
    others = counts.filter(pl.col("len") != usual)
    if others.is_empty():
        return
    found_steps = spans(others["len"].unique().sort().to_list())
    yield reported(
        problem(
            "unequal-steps",
            f"Most have {usual}, ranks {spans(others['rank'].to_list())} have {found_steps}.",
            count=len(others),
        )
    )


def _groups(found: Compared) -> Iterator[Problem]:
    if not found.met.ambiguous:
        return
    yield reported(
        problem(
            "ambiguous-groups",
            f"{found.met.ambiguous:,} collectives have more ranks than their group.",
            count=found.met.ambiguous,
        )
    )
