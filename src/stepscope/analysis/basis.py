"""How long a step takes: what every share, saving and speed-up of a report is measured by.

The step without the profiler, where the capture timed a run of such steps between two waits for the device; else the step as
recorded. The choice is made here, and nowhere else.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.policy.capture import WORK_OF_CUT_STEP
from stepscope.trace.frames import take_largest
from stepscope.trace.trace import Trace

UNPROFILED, RECORDED = "unprofiled", "recorded"
# A recording without the device's side says nothing about what a change would bring.
_BROKEN = "no-device-events"
_CUT = ("truncated", "damaged", "damaged-gzip", "damaged-message")
_ENDS_EARLY = ("truncated", "damaged-gzip")
_BY_THREAD = ("xplane",)  # written one thread after the other: what ends early lacks whole ones
_HOST_WORK = ("op", "runtime")
_DEVICE_WORK = ("kernel", "copy", "memset")


@dataclass(frozen=True)
class Basis:
    """A mean step, and its spread where it is known; `count` steps were timed, `host_ns` of each are the host's own."""

    ns: float
    source: str
    low_ns: float | None = None
    high_ns: float | None = None
    count: int = 0
    host_ns: float | None = None


def step_basis(trace: Trace, recorded_ns: float, source: str) -> Basis:
    """`recorded_ns` is the mean of the recorded steps, which come from `source`: the capture timed those that it marked."""
    known = trace.info.capture.get("unprofiled_step") if source == "marker" else None
    if not isinstance(known, dict) or not _is_positive(known.get("mean_ns")):
        return Basis(recorded_ns, RECORDED)
    return Basis(
        ns=float(known["mean_ns"]),
        source=UNPROFILED,
        low_ns=_number(known.get("low_ns")),
        high_ns=_number(known.get("high_ns")),
        count=int(_number(known.get("count")) or 0),
        host_ns=_number(known.get("host_ns")),
    )


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


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _number(value: Any) -> float | None:
    return float(value) if _is_positive(value) else None
