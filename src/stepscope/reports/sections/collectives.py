"""Communication over all ranks: per operation, and how each rank compares with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from stepscope.analysis.collectives.between_devices import OPERATION, waits_between_devices
from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.collectives.summary import Collectives as RankCollectives
from stepscope.analysis.collectives.summary import added_rows, collective_sums, with_shares
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.columns import capped
from stepscope.reports.model import report as model
from stepscope.reports.sections.section import Section

if TYPE_CHECKING:  # a rank alone is compared with none
    from stepscope.ranks.compare import Calls, Compared


@dataclass(frozen=True)
class RankPart:
    """One rank's calls as sums, those behind its shares, and what is compared with other ranks."""

    rank: int
    rows: pl.DataFrame
    sums: RankCollectives
    compared: Calls | None  # None where that stays with whoever read the rank, or there is no other
    world_size: int | None = None
    met: pl.DataFrame | None = None  # what the devices of a rank alone waited for each other


def of_rank(context: RankContext) -> RankPart:
    """The rank's communication."""
    calls = collective_calls(context.trace, context.account)
    rows = collective_sums(calls)
    sums = with_shares(context.trace, context.account, rows)
    world = context.whole_trace.info.world_size
    compared = None if context.alone else rank_calls(context, calls)
    met = waits_between_devices(calls) if context.alone else None
    return RankPart(context.rank, rows, sums, compared, world, met)


def rank_calls(context: RankContext, calls: pl.DataFrame) -> Calls:
    """What the others are compared with: the calls by the recorded clock, and how the steps went."""
    from stepscope.ranks.calls.matching import KEY, keyed_with_events
    from stepscope.ranks.clocks.shared import machine_of
    from stepscope.ranks.compare import calls_of
    from stepscope.ranks.job.course import course_of
    from stepscope.ranks.job.readiness import ready_ns
    from stepscope.ranks.stragglers.pace import pace

    device = context.critical_device
    ops = context.op_calls if device is None else None
    steps = pace(context.trace, context.account, context.steps, context.rank, device, ops)
    info = context.whole_trace.info
    began = info.base_unix_ns + info.clock_offset_ns
    machine = machine_of(info.host, info.capture)
    mine = pl.col("device").eq_missing(device)
    keys, events = keyed_with_events(calls, context.rank)
    course = course_of(
        calls.with_columns(ready_ns(context.trace, calls)),
        context.account.slices.filter(mine),
        context.windows.windows.filter(mine & ~pl.col("partial").fill_null(False)),
        context.rank,
        info.host,
        steps.did if device is not None else None,
        info.world_size,
        keys[[*KEY, "stream"]].hstack([events]),
    )
    return calls_of(calls, context.rank, steps, began, info.clock_drift, machine, course, keys)


def joined(ranks: Sequence[RankPart], options: Options) -> Mapping[str, Any]:
    """Rows over all calls of all ranks; shares of the summed time."""
    calls = {rank.rank: rank.compared for rank in ranks if rank.compared is not None}
    # A rank alone waits for nobody that is known.
    if len(ranks) < 2 or not any(len(rank.rows) for rank in ranks):
        return told_of(ranks, None, options)
    from stepscope.ranks.compare import compare

    return told_of(ranks, compare(calls), options)


def told_of(ranks: Sequence[RankPart], found: Compared | None, options: Options) -> Mapping[str, Any]:
    """The section, once the ranks were compared."""
    if not ranks:
        return {"collectives": model.Collectives()}
    rows = added_rows([rank.rows for rank in ranks])
    world = max((rank.world_size or 0 for rank in ranks), default=0)
    if found is not None:
        return _told_of_several(ranks, rows, found, world, options)
    met = ranks[0].met
    if met is not None and not met.is_empty():
        rows = rows.join(met, on=OPERATION, how="left", nulls_equal=True, maintain_order="left")
    told: dict[str, Any] = {"collectives": _told(ranks, rows, options), "job": None, "job_model": None}
    if len(ranks) < 2 or not rows.is_empty():
        return told | {"rank_problems": []}
    from stepscope.reports.ranks.unequal import nothing_recorded

    return told | {"rank_problems": [nothing_recorded(len(ranks), world)]}


def _told_of_several(
    ranks: Sequence[RankPart], rows: pl.DataFrame, found: Compared, world: int, options: Options
) -> Mapping[str, Any]:
    from stepscope.reports.ranks.compare import between_ranks, rank_figures, transfers
    from stepscope.reports.ranks.job import job_of
    from stepscope.reports.ranks.unequal import unequal

    of_row = ["name", "group", "group_size", "dtype"]
    rows = rows.join(transfers(found, world), on=of_row, how="left", nulls_equal=True, maintain_order="left")
    told = _told(ranks, rows, options)
    figures = rank_figures(found)
    told.ranks = [{**_row(rank), **figures[rank.rank]} for rank in ranks]
    between_ranks(told, found, world, options)
    return {
        "collectives": told,
        "job": None if found.job is None else job_of(found.job),
        "job_model": None if found.job is None else found.job.model,
        "rank_problems": unequal(found),
    }


def _told(ranks: Sequence[RankPart], rows: pl.DataFrame, options: Options) -> model.Collectives:
    total = RankCollectives(
        rows=rows,
        exposed_ns=sum(rank.sums.exposed_ns for rank in ranks),
        step_ns=sum(rank.sums.step_ns for rank in ranks),
        collective_kernel_ns=sum(rank.sums.collective_kernel_ns for rank in ranks),
        kernel_ns=sum(rank.sums.kernel_ns for rank in ranks),
    )
    return model.Collectives(
        rows=msgspec.convert(capped(rows, options.limit).to_dicts(), list[model.CollectiveRow]),
        exposed_share=_rounded(total.exposed_share) if len(rows) else None,
        kernel_share=_rounded(total.kernel_share) if len(rows) else None,
    )


def _row(part: RankPart) -> dict[str, Any]:
    return {
        "rank": part.rank,
        "calls": int(part.rows["calls"].sum()),
        "total_ns": int(part.rows["total_ns"].sum()),
        "exposed_ns": part.sums.exposed_ns,
        "exposed_share": _rounded(part.sums.exposed_share),
        "kernel_share": _rounded(part.sums.kernel_share),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


SECTION = Section("collectives", of_rank, joined)
