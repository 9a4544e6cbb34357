"""Recordings that lack the device's work, as a whole or from some step on: no speed-up can be promised from them."""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.capture import WORK_OF_CUT_STEP
from stepscope.trace.frames import take_largest
from stepscope.trace.trace import Trace

# A recording without the device's side says nothing about what a change would bring.
_BROKEN = "no-device-events"
_CUT = ("truncated", "damaged", "damaged-gzip", "damaged-message")
_ENDS_EARLY = ("truncated", "damaged-gzip")
_BY_THREAD = ("xplane",)  # written one thread after the other: what ends early lacks whole ones
_HOST_WORK = ("op", "runtime")
_DEVICE_WORK = ("kernel", "copy", "memset")


def is_broken(trace: Trace) -> bool:
    """Whether the job has a device of which nothing was recorded, or not all: no speed-up can be promised."""
    codes = trace.problems["code"].to_list()
    lost_threads = trace.info.format in _BY_THREAD and any(code in codes for code in _ENDS_EARLY)
    return _BROKEN in codes or lost_threads or bool(steps_without_work(trace)[0])


def is_cut(trace: Trace) -> bool:
    """Whether parts of the file are missing."""
    return bool(trace.problems["code"].cast(pl.String).is_in(_CUT).any())


def steps_without_work(trace: Trace) -> tuple[int, int]:
    """Of how many steps the work of the device is missing since the file was cut off, and of how many in all.

    A profiler writes what the host did first, then what the device did in the order of time. A step lacks work if it has much
    less of it than the step with the most. Without steps the recording counts as one.
    """
    if not is_cut(trace) or not trace.info.devices:
        return 0, 0
    kinds = trace.events["kind"].cast(pl.String)
    done = trace.events.select("step", host=kinds.is_in(_HOST_WORK), device=kinds.is_in(_DEVICE_WORK)).filter(
        pl.col("host") | pl.col("device")
    )
    counts = done.group_by("step").agg(pl.col("host", "device").sum())
    counts = counts.drop_nulls("step") if counts["step"].n_unique() > 1 else counts
    active = counts.filter(pl.col("host") > 0)["device"]
    most = take_largest(active)
    return int((active <= WORK_OF_CUT_STEP * most).sum()), len(active)
