"""Recordings that lack the device's work, as a whole or from some step on: no speed-up can be promised from them."""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.capture import WORK_OF_CUT_STEP
from stepscope.trace.columns import repeated
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.trace import Trace

# A recording without the device's side says nothing about what a change would bring.
_BROKEN = "no-device-events"
_CUT = ("truncated", "damaged", "damaged-gzip", "damaged-message")
_ENDS_EARLY = ("truncated", "damaged-gzip")
_BY_THREAD = ("xplane",)  # written one thread after the other: what ends early lacks whole ones
_DEVICE_LAST = ("kineto",)  # what a file of these lacks at its end is the device's
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

    A profiler writes what the host did first, then what the device did in the order of time, and before it or after it the
    calls that launched it: of both, whichever comes last is gone first, so that only work with its launch counts. A step lacks
    work if it has much less of it than the step with the most; a single one if its work ends long before the host's does.
    Without steps the recording counts as one.
    """
    if not is_cut(trace) or not (trace.info.devices or trace.info.format in _DEVICE_LAST):
        return 0, 0
    kinds = trace.events["kind"].cast(pl.String)
    done = trace.events.select(
        "step",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        host=kinds.is_in(_HOST_WORK),
        device=kinds.is_in(_DEVICE_WORK) & _is_launched(trace),
    ).filter(pl.col("host") | pl.col("device"))
    counts = done.group_by("step").agg(pl.col("host", "device").sum())
    counts = counts.drop_nulls("step") if counts["step"].n_unique() > 1 else counts
    active = counts.filter(pl.col("host") > 0)["device"]
    lacking = int((active <= WORK_OF_CUT_STEP * take_largest(active)).sum())
    if len(active) == 1 and not lacking:
        lacking = int(_ends_early(trace, done))
    return lacking, len(active)


def may_lack_device(trace: Trace) -> bool:
    """Whether the file was cut off so early that it cannot say whether the job uses a device at all."""
    if not is_cut(trace) or trace.info.devices or trace.info.format not in _DEVICE_LAST:
        return False
    kinds = trace.events["kind"].cast(pl.String)
    return bool(kinds.is_in(_HOST_WORK).any()) and not kinds.is_in(_DEVICE_WORK).any()


def _is_launched(trace: Trace) -> pl.Series:
    """Which events a recorded call launched; all, where the format does not show it."""
    launches = trace.links.filter(pl.col("why") == "launch")
    if launches.is_empty() and trace.info.format not in _DEVICE_LAST:
        return repeated(True, len(trace.events), pl.Boolean)
    return repeated(False, len(trace.events), pl.Boolean).scatter(launches["to"], True)


def _ends_early(trace: Trace, done: pl.DataFrame) -> bool:
    """Whether the device's work of the only step ends long before the work of the host."""
    begin = take_smallest(trace.events.filter(pl.col("kind").cast(pl.String).is_in(_HOST_WORK))["start_ns"])
    host, device = (take_largest(done.filter(pl.col(side))["end_ns"]) for side in ("host", "device"))
    return device - begin <= WORK_OF_CUT_STEP * (host - begin)
