"""How the devices were used during the steps: busy time, streams, concurrency, SM efficiency, occupancy, queue, copies.

busy share     = time in which anything ran on the device (kernel, copy or memset) / time of the steps.
concurrency    = sum of the kernels' durations / time in which any kernel ran.
SM efficiency  = sum over time of min(1, blocks per SM of all running kernels) / time of the steps: the share of
                 multiprocessors that had a block to work on, if blocks spread evenly.
occupancy      = mean of the kernels' occupancy (`kernel_occupancy`), weighted by their durations.
Several devices are taken together: times are summed over them.
"""

from __future__ import annotations

from dataclasses import field

import polars as pl

from stepscope.analysis.account.account import BUSY_PARTS, Account
from stepscope.analysis.device.copies import copies_table
from stepscope.analysis.device.launch_queue import Queue, launch_queue
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import KNOWN_ENOUGH
from stepscope.registers.policy.tables import DEVICE_BINS
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.trace import Trace

_TIMELINE = {"device": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64, "busy": pl.Float64}


@dataclass(frozen=True)
class DeviceUse:
    """`window_ns` is the time of the steps, summed over devices: the weight of the shares among ranks."""

    window_ns: int = 0
    busy_share: float | None = None
    sm_efficiency: float | None = None
    occupancy: float | None = None
    streams: int = 0
    concurrency: float | None = None
    copies: pl.DataFrame = field(default_factory=lambda: copies_table(None, None))
    queue: Queue = field(default_factory=Queue)
    timeline: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_TIMELINE))


def device_use(trace: Trace, steps: Steps, account: Account, calls: pl.DataFrame) -> DeviceUse:
    """All of it, from the steps' windows, their account and the calls of kernels (`kernels.kernel_calls`)."""
    windows = steps.windows.filter(pl.col("device").is_not_null())
    window_ns = int((windows["end_ns"] - windows["start_ns"]).sum())
    copies, queue = copies_table(trace, account), launch_queue(trace)
    if not window_ns:
        return DeviceUse(copies=copies, queue=queue)
    busy = account.slices.filter(pl.col("part").is_in(BUSY_PARTS))
    kernels = busy.filter(pl.col("part") != "copy")
    running = _clipped(calls, windows)
    any_ns = _length(kernels)
    return DeviceUse(
        window_ns=window_ns,
        busy_share=_length(busy) / window_ns,
        sm_efficiency=_sm_efficiency(running, window_ns),
        occupancy=_occupancy(calls),
        streams=_streams(trace),
        concurrency=_length(running) / any_ns if any_ns else None,
        copies=copies,
        queue=queue,
        timeline=timeline(busy, windows),
    )


def _streams(trace: Trace) -> int:
    """Streams that had any work in the steps."""
    work = trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))
    inside = work.filter(pl.col("step").is_not_null()) if trace.events["step"].count() else work
    streams = trace.tracks.filter(pl.col("what") == "device")["id"]
    return inside.filter(pl.col("track").is_in(streams.implode()))["track"].n_unique()


def timeline(busy: pl.DataFrame, windows: pl.DataFrame, bins: int = DEVICE_BINS) -> pl.DataFrame:
    """device, start_ns, end_ns, busy: the busy share of equal pieces of time from the first step to the last."""
    parts = [
        _timeline(key[0], busy.filter(pl.col("device") == key[0]), part, bins)
        for key, part in windows.group_by("device", maintain_order=True)
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema=_TIMELINE)


def _timeline(device: int, busy: pl.DataFrame, windows: pl.DataFrame, bins: int) -> pl.DataFrame:
    low, high = take_smallest(windows["start_ns"]), take_largest(windows["end_ns"])
    count = max(1, min(bins, high - low))
    edges = pl.Series([low + (high - low) * at // count for at in range(count + 1)])
    done = time_before(edges, busy.sort("start_ns"))
    frame = pl.DataFrame({"start_ns": edges[:-1], "end_ns": edges[1:], "ns": done[1:] - done[:-1]})
    share = pl.col("ns") / (pl.col("end_ns") - pl.col("start_ns"))
    return frame.select(pl.lit(device, dtype=pl.Int32).alias("device"), "start_ns", "end_ns", busy=share)


def time_before(times: pl.Series, busy: pl.DataFrame) -> pl.Series:
    """How much of the slices, which are in order and do not overlap, lies before each time."""
    if busy.is_empty():
        return pl.zeros(len(times), dtype=pl.Int64, eager=True)
    length = (busy["end_ns"] - busy["start_ns"]).cum_sum()
    begun = busy["start_ns"].search_sorted(times, side="left").cast(pl.Int64)
    at = (begun - 1).clip(lower_bound=0)
    over = (busy["end_ns"].gather(at) - times).clip(lower_bound=0)  # of the slice that is still running
    found = pl.DataFrame({"begun": begun, "done": length.gather(at) - over})
    return found.select(pl.when(pl.col("begun") > 0).then("done").otherwise(0)).to_series()


def _clipped(calls: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """device, start_ns, end_ns, blocks_per_sm of the kernels, cut to the time between first and last step."""
    spans = windows.group_by("device").agg(low=pl.col("start_ns").min(), high=pl.col("end_ns").max())
    rows = calls.select(
        "device", "start_ns", "blocks_per_sm", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    ).join(spans, on="device")
    return rows.select(
        "device",
        "blocks_per_sm",
        start_ns=pl.max_horizontal("start_ns", "low"),
        end_ns=pl.min_horizontal("end_ns", "high"),
    ).filter(pl.col("start_ns") < pl.col("end_ns"))


def _length(spans: pl.DataFrame) -> int:
    return int((spans["end_ns"] - spans["start_ns"]).sum())


def _sm_efficiency(running: pl.DataFrame, window_ns: int) -> float | None:
    known = running.filter(pl.col("blocks_per_sm").is_not_null())
    if not len(known) or _length(known) < KNOWN_ENOUGH * _length(running):
        return None
    begin = known.select("device", at="start_ns", change="blocks_per_sm")
    end = known.select("device", at="end_ns", change=-pl.col("blocks_per_sm"))
    edges = pl.concat([begin, end]).sort("device", "at")
    after = pl.col("at").shift(-1) - pl.col("at")
    filled = edges.select(
        pl.col("change").cum_sum().over("device").clip(0, 1) * after.over("device").fill_null(0)
    )
    return float(filled.to_series().sum()) / window_ns


def _occupancy(calls: pl.DataFrame) -> float | None:
    known = calls.filter(pl.col("occupancy").is_not_null() & (pl.col("dur_ns") > 0))
    total = int(known["dur_ns"].sum())
    return float((known["occupancy"] * known["dur_ns"]).sum()) / total if total else None
