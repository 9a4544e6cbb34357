"""Where did the step go: compute, communication, copies, or waiting — and for whom."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from stepscope.analysis.account.charge import named_within_steps
from stepscope.analysis.account.idle import explain
from stepscope.analysis.part_column import Part
from stepscope.analysis.parts import BUSY_PARTS, IDLE_PARTS, PARTS
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.native.spans import slices as native
from stepscope.native.spans import sweep
from stepscope.registers.policy.tables import MOST_CELLS
from stepscope.trace.columns import buffer, repeated, series
from stepscope.trace.frames import take, take_largest, take_smallest
from stepscope.trace.trace import Trace

__all__ = ["BUSY_PARTS", "IDLE_PARTS", "PARTS", "Account", "account"]

_COPY, _COLLECTIVE, _COMPUTE, _LOOP = 2, 3, 4, 1  # a loop last
_BUSY = {_COMPUTE: "compute", _COLLECTIVE: "collective", _COPY: "copy", _LOOP: "compute"}


_COLUMNS = ["start_ns", "end_ns", "part", "named_by", "detail", "thread"]


@dataclass(frozen=True)
class Account:
    """`slices`: device, step, start_ns, end_ns, part, named_by, detail, thread; they fill each step, in no order.

    named_by is the event whose doing the slice is, thread the track it was on; detail is an event that says more:
    the call site, what was slow inside, or the op that launched a kernel.
    """

    slices: pl.DataFrame

    def of_device(self, device: int | None) -> pl.DataFrame:
        """The slices of one device; no copy of them where there is no other."""
        devices = self.slices["device"].unique()
        if len(devices) == 1 and devices[0] == device:
            return self.slices
        return self.slices.filter(pl.col("device").eq_missing(device))

    @cached_property
    def parts(self) -> pl.DataFrame:
        """ns per device, step and part; the parts of a step sum to its duration."""
        devices = self.slices["device"].unique(maintain_order=True)
        return pl.concat([_NO_PARTS, *(_parts_of(self.of_device(device), device) for device in devices)])


def _parts_of(slices: pl.DataFrame, device: int | None) -> pl.DataFrame:
    """The parts of one device, in the order in which they first appear."""
    step = slices["step"]
    low, high = take_smallest(step), take_largest(step)
    if (high - low + 1) * len(PARTS) > MOST_CELLS + len(slices):  # numbers of steps are the job's own
        length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
        return slices.group_by("device", "step", "part", maintain_order=True).agg(length)
    steps, parts, ns = native.sum_cells(
        buffer(step), buffer(slices["part"].to_physical()), buffer(slices["start_ns"]), buffer(slices["end_ns"]),
        (low, high), len(PARTS),
    )  # fmt: skip
    return pl.DataFrame(
        [
            repeated(device, len(steps), pl.Int32, "device"),
            series("step", steps, pl.Int32),
            take(_PART, series("part", parts, pl.UInt8)).alias("part"),
            series("ns", ns, pl.Int64),
        ]
    )


def account(trace: Trace, steps: Steps) -> Account:
    """Cut each step at every boundary and give each slice to one part. Parts sum to the step."""
    devices = steps.windows["device"].unique(maintain_order=True).to_list()
    return Account(pl.concat([_NOTHING, *(_of_device(trace, steps, device) for device in devices)]))


_NOTHING = pl.DataFrame(
    schema={
        "part": Part, "named_by": pl.UInt32, "detail": pl.UInt32, "thread": pl.UInt32, "step": pl.Int32, "device": pl.Int32,
        "start_ns": pl.Int64, "end_ns": pl.Int64,
    }
)  # fmt: skip
_NO_PARTS = pl.DataFrame(schema={"device": pl.Int32, "step": pl.Int32, "part": Part, "ns": pl.Int64})
_PART = pl.Series("part", PARTS, dtype=Part)


def _of_device(trace: Trace, steps: Steps, device: int | None) -> pl.DataFrame:
    windows = steps.windows.filter(pl.col("device").eq_missing(device)).sort("start_ns")
    low, high = int(windows["start_ns"][0]), int(windows["end_ns"][-1])
    work = _work(trace, device)
    busy = _busy_slices(work, low, high)
    idle = explain(trace, steps, work, _gaps(busy, low, high))
    slices, until = _cut_at_steps(pl.concat([busy.select(_COLUMNS), idle.select(_COLUMNS)]), windows, device)
    return named_within_steps(trace, steps, slices, until)


def _work(trace: Trace, device: int | None) -> pl.DataFrame:
    """The device's own work in time order, with the priority by which it claims a moment.

    A loop on the core of a TPU has the moments that nothing inside it has.
    """
    streams = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").eq_missing(device))["id"]
    is_work = pl.col("kind").is_in(["kernel", "copy", "memset", "scope"])
    work = trace.events.lazy().filter(is_work & pl.col("track").is_in(streams.implode()))
    priority = (
        pl.when(pl.col("kind") == "scope").then(_LOOP)
        .when(pl.col("kind") != "kernel").then(_COPY)
        .when((pl.col("role") == "collective").fill_null(False)).then(_COLLECTIVE)
        .otherwise(_COMPUTE)
    )  # fmt: skip
    return (
        work.select(
            "id",
            "track",
            "start_ns",
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            priority=priority.cast(pl.UInt8),
        )
        .collect()
        .sort("start_ns", maintain_order=True)
    )


def _busy_slices(work: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
    found = sweep.slices(
        buffer(work["start_ns"]), buffer(work["end_ns"]), buffer(work["priority"]), low, high
    )
    start, end, priority, owner = found
    slices = pl.DataFrame(
        {
            "start_ns": series("start_ns", start, pl.Int64),
            "end_ns": series("end_ns", end, pl.Int64),
            "priority": series("priority", priority, pl.UInt8),
            "owner": series("owner", owner, pl.UInt32),
        }
    ).filter(pl.col("priority") > 0)
    part = slices["priority"].replace_strict(_BUSY, return_dtype=Part)
    return slices.with_columns(
        part=part,
        named_by=take(work["id"], slices["owner"]),
        detail=pl.lit(None, dtype=pl.UInt32),
        thread=take(work["track"], slices["owner"]),
    )


def _gaps(busy: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
    """The moments between slices in which the device does nothing."""
    start = pl.concat([pl.Series([low]), busy["end_ns"]])
    end = pl.concat([busy["start_ns"], pl.Series([high])])
    return pl.DataFrame({"start_ns": start, "end_ns": end}).filter(pl.col("start_ns") < pl.col("end_ns"))


def _cut_at_steps(
    slices: pl.DataFrame, windows: pl.DataFrame, device: int | None
) -> tuple[pl.DataFrame, pl.Series]:
    """Each slice in each step it reaches into, and when that step ends."""
    row, window, start, end = native.cut(
        buffer(slices["start_ns"]), buffer(slices["end_ns"]), buffer(windows["start_ns"]), buffer(windows["end_ns"])
    )  # fmt: skip
    found = slices.drop("start_ns", "end_ns")[series("row", row, pl.UInt32)]
    place = series("window", window, pl.UInt32)
    cut = found.hstack(
        [
            take(windows["step"], place).alias("step"),
            repeated(device, len(found), pl.Int32, "device"),
            series("start_ns", start, pl.Int64),
            series("end_ns", end, pl.Int64),
        ]
    )
    return cut, take(windows["end_ns"], place)
