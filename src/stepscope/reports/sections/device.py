"""How the devices were used, over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.device.use import DeviceUse, device_use
from stepscope.analysis.kernels.mfu import Utilisation, matrix_products, utilisation
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.columns import capped, sum_or_null
from stepscope.reports.model.report import CopyRow, Device, Queue
from stepscope.reports.sections.section import Section

_PLACES = ("direction", "source", "target")
TIMELINES = 64  # ranks whose timelines are kept


@dataclass(frozen=True)
class RankDevices:
    """The devices of one rank taken together."""

    rank: int
    use: DeviceUse
    mfu: Utilisation | None


def of_rank(context: RankContext) -> RankDevices:
    """The rank's devices, and how much of their peak they reached."""
    use = device_use(context.work, context.windows, context.account, context.kernel_calls)
    products = matrix_products(context.work, context.op_calls, context.kernel_calls)
    return RankDevices(context.rank, use, utilisation(context.trace, products, use.window_ns))


def joined(ranks: Sequence[RankDevices], options: Options) -> Mapping[str, Any]:
    """Shares are weighted by the time of the steps, the queue's figures by launches; copies are summed."""
    if not ranks:
        return {"device": Device()}
    uses = [rank.use for rank in ranks]
    found = Device(
        busy_share=_mean(ranks, lambda rank: rank.use.busy_share),
        mfu=_mean(ranks, lambda rank: rank.mfu.best if rank.mfu else None),
        mfu_own_precision=_mean(ranks, lambda rank: rank.mfu.own_precision if rank.mfu else None),
        sm_efficiency=_mean(ranks, lambda rank: rank.use.sm_efficiency),
        occupancy=_mean(ranks, lambda rank: rank.use.occupancy),
        streams=max(use.streams for use in uses),
        concurrency=_mean(ranks, lambda rank: rank.use.concurrency),
        copies=_copies([use.copies for use in uses], options),
        queue=_queue([Queue(**asdict(use.queue)) for use in uses if use.queue.launches]),
        timeline=[
            {"rank": each.rank, **row} for each in ranks[:TIMELINES] for row in each.use.timeline.to_dicts()
        ],
    )
    return {"device": found}


def _mean(ranks: Sequence[RankDevices], figure: Callable[[RankDevices], float | None]) -> float | None:
    weighted = [(value, rank.use.window_ns) for rank in ranks if (value := figure(rank)) is not None]
    weight = sum(ns for _, ns in weighted)
    return round(sum(value * ns for value, ns in weighted) / weight, 6) if weight else None


def _copies(tables: Sequence[pl.DataFrame], options: Options) -> list[CopyRow]:
    rows = pl.concat(tables)
    moved = pl.when(pl.col("gb_per_s").is_not_null()).then(pl.col("total_ns")).sum()
    summed = rows.group_by(_PLACES, maintain_order=True).agg(
        pl.col("calls", "total_ns").sum(),
        sum_or_null("bytes"),
        sum_or_null("exposed_ns"),
        gb_per_s=(pl.col("gb_per_s") * pl.col("total_ns")).sum() / moved,
    )
    ordered = summed.with_columns(pl.col("gb_per_s").fill_nan(None)).sort("total_ns", descending=True)
    return msgspec.convert(capped(ordered, options.limit).to_dicts(), list[CopyRow])


def _queue(queues: Sequence[Queue]) -> Queue:
    """Medians of several ranks are means of their medians, weighted by launches."""
    launches = sum(queue.launches for queue in queues)
    if not launches:
        return Queue()

    def mean(figure: Callable[[Queue], float | None]) -> float:
        return sum((figure(queue) or 0) * queue.launches for queue in queues) / launches

    return Queue(
        launches=launches,
        median_delay_ns=round(mean(lambda queue: queue.median_delay_ns)),
        p90_delay_ns=round(mean(lambda queue: queue.p90_delay_ns)),
        median_depth=round(mean(lambda queue: queue.median_depth), 3),
        max_depth=max(queue.max_depth or 0 for queue in queues),
        empty_share=round(mean(lambda queue: queue.empty_share), 6),
    )


SECTION = Section("device", of_rank, joined)
