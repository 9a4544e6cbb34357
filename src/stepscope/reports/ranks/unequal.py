"""What is wrong with the recordings of the ranks as far as it shows only when they are held against each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.profiles.ranks import spans
from stepscope.ranks.compare import Compared
from stepscope.reports.model.report import Problem


def unequal(found: Compared) -> list[Problem]:
    """Ranks with other numbers of calls or steps than most, and groups that cannot be told apart."""
    return [*_calls(found), *_steps(found), *_groups(found), *_unmatched(found)]


def nothing_recorded(ranks: int, world: int) -> Problem:
    """Ranks of one job must meet somewhere; a profile in which they never do does not show that nobody waits."""
    return Problem(
        code="no-collectives",
        severity="warning" if world > 1 else "info",
        title="No communication between the ranks was recorded",
        detail=f"{ranks:,} ranks were loaded, and no event of theirs is a collective: who waits for whom cannot be told, nor "
        "how far their clocks are apart.",
        fix="If they train together: record the device (and not only the host), or on CPUs with host_tracer_level=2 and "
        "a backend whose calls the framework records.",
        count=ranks,
    )


def _unmatched(found: Compared) -> Iterator[Problem]:
    """Collectives in which ranks wait for each other, and yet none that two ranks have."""
    calling = sorted(look.rank for look in found.looks if len(look.lanes))
    silent = sorted(look.rank for look in found.looks if look.lanes.is_empty())
    if len(found.meetings) or found.ambiguous or not calling:
        return
    detail = (
        f"Ranks {spans(calling)} have collectives in their steps, ranks {spans(silent)} none: these have none at all, or theirs run "
        "after the steps that began them."
        if silent
        else f"Ranks {spans(calling)} have collectives, and none with the group, number or step of another rank's."
    )
    yield Problem(
        code="unmatched-collectives",
        severity="warning",
        title="No collective of one rank was found on another",
        detail=f"{detail} Who waits for whom cannot be told.",
        fix="Record the same steps on all ranks of one job, and load only those. Where work runs behind the host, let each recorded step wait "
        "for its result: jax.block_until_ready(loss), loss.item(), loss.numpy().",
        count=len(silent) or len(calling),
    )


def _calls(found: Compared) -> Iterator[Problem]:
    if found.unusual.is_empty():
        return
    names = found.meetings.unique("lane").select("lane", "name", "group")
    rows = found.unusual.join(names, on="lane", how="left").sort("ranks", "example", descending=[True, False])
    row = rows.row(0, named=True)
    yield Problem(
        code="unequal-collectives",
        severity="warning",
        title="Ranks made different numbers of collective calls",
        detail=(
            f"{_who(row)} made {row['calls']:,} calls of {_what(row)}, most ranks another number. Calls with sequence numbers are "
            "matched all the same; without, steps with another number of calls are left out."
        ),
        fix="Begin and end the recording of all ranks at the same step.",
        count=int(rows["ranks"].sum()),
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
    yield Problem(
        code="unequal-steps",
        severity="warning",
        title="Ranks recorded different numbers of steps",
        detail=f"Most have {usual}, ranks {spans(others['rank'].to_list())} have {spans(others['len'].unique().sort().to_list())}. "
        "Only steps that several ranks have are compared.",
        fix="Begin and end the recording of all ranks at the same step.",
        count=len(others),
    )


def _groups(found: Compared) -> Iterator[Problem]:
    if not found.ambiguous:
        return
    yield Problem(
        code="ambiguous-groups",
        severity="warning",
        title="Process groups cannot be told apart",
        detail=f"{found.ambiguous:,} collectives have more ranks than their group: several groups share a name. They are not matched.",
        fix="Record with a PyTorch that writes the ranks of process groups (2.4 or newer), or give groups names of their own.",
        count=found.ambiguous,
    )
