"""The launch queue of the devices: how long work waits between its launch and its start, and how much waits.

delay  = start of the work on the device - end of the call that launched it, not below 0.
depth  = pieces of work launched earlier on that device that are not finished when the next launch begins.
A launch with depth 0 met an idle device: the host is not ahead of it. A graph is one launch and one piece of work.
"""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.levels import TAIL_QUANTILE
from stepscope.trace.frames import take_largest, take_mean, take_median
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


@dataclass(frozen=True)
class Queue:
    """Figures over all launches of work in the steps."""

    launches: int = 0
    median_delay_ns: int | None = None
    p90_delay_ns: int | None = None
    median_depth: float | None = None
    max_depth: int | None = None
    empty_share: float | None = None


def launch_queue(trace: Trace) -> Queue:
    """Delay and depth over the steps' launches; depth also counts work launched before the steps."""
    launches = launch_rows(trace)
    inside = launches.filter(pl.col("step").is_not_null()) if launches["step"].count() else launches
    if inside.is_empty():
        return Queue()
    delay, depth = inside["delay_ns"], inside["depth"]
    return Queue(
        launches=len(inside),
        median_delay_ns=_rounded(delay.median()),
        p90_delay_ns=_rounded(delay.quantile(TAIL_QUANTILE, "nearest")),
        median_depth=take_median(depth),
        max_depth=take_largest(depth),
        empty_share=take_mean(depth == 0),
    )


def launch_rows(trace: Trace) -> pl.DataFrame:
    """One row per launch: device, step, launched_ns, start_ns, end_ns, delay_ns, depth."""
    events = trace.events
    links = trace.links.filter(pl.col("why") == "launch")
    device = trace.tracks["device"].gather(events["track"])
    begun, caller = events["start_ns"], links["from"]
    rows = links.select(
        launch="from",
        device=device.gather(links["to"]),
        kind=events["kind"].gather(links["to"]),
        step=events["step"].gather(links["to"]),
        start_ns=begun.gather(links["to"]),
        end_ns=(begun + events["dur_ns"]).gather(links["to"]),
        launched_ns=begun.gather(caller),
        returned_ns=(begun + events["dur_ns"]).gather(caller),
    ).filter(pl.col("kind").is_in(_WORK) & pl.col("device").is_not_null())
    launches = rows.group_by("launch", "device").agg(
        pl.col("step", "launched_ns", "returned_ns").first(),
        pl.col("start_ns").min(),
        pl.col("end_ns").max(),
    )
    parts = [_with_depth(part) for _, part in launches.group_by("device", maintain_order=True)]
    found = pl.concat(parts) if parts else launches.with_columns(depth=pl.lit(0))
    return found.with_columns(delay_ns=(pl.col("start_ns") - pl.col("returned_ns")).clip(0))


def _with_depth(launches: pl.DataFrame) -> pl.DataFrame:
    """Launched before, less finished before; work whose clock ran ahead may have ended before its launch."""
    rows = launches.sort("launched_ns", "start_ns")
    finished = rows["end_ns"].sort().search_sorted(rows["launched_ns"], side="right").cast(pl.Int64)
    earlier = pl.int_range(0, len(rows), dtype=pl.Int64, eager=True)
    return rows.with_columns(depth=(earlier - finished).clip(lower_bound=0))


def _rounded(value: object) -> int | None:
    return round(value) if isinstance(value, int | float) else None
