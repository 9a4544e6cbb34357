"""How one rank's steps went, in a few numbers a step: enough to compare it with the others."""

from __future__ import annotations

from dataclasses import field
from statistics import median
from typing import Any

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.account.charge import Charger
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.ranks.stragglers.full_queue import blocked_launches
from stepscope.ranks.stragglers.kernel_work import (
    CALLED,
    KERNELS,
    count_calls,
    kernel_work,
    shaped,
    shaped_ops,
)
from stepscope.trace.frames import conform, filled, kept, take
from stepscope.trace.trace import Trace

STEPS = {
    "rank": pl.Int32,
    "step": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "blocks": pl.Float64,  # of all kernels that compute (on hosts: FLOPs of ops): the amount of work, where shapes are known
}
BESIDE = "beside"  # what is a collective in the account, and yet no wait
_COLLECTIVE, _AT_WORK = "collective", ("compute", "copy")
_DISPATCH = "dispatch"
PARTS = {"rank": pl.Int32, "step": pl.Int32, "part": pl.String, "ns": pl.Int64}


@dataclass(frozen=True)
class Pace:
    """`steps`: STEPS, `parts`: PARTS; of the rank's critical device. `kernels`: KERNELS. Clock and heat of its GPU where they were sampled.

    `did`: PARTS of the host beside a device, whether the device waited for them or not; empty without one.
    """

    steps: pl.DataFrame
    parts: pl.DataFrame
    clock_mhz: float | None = None
    celsius: float | None = None
    kernels: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=KERNELS))
    did: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PARTS))
    called: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema=CALLED)
    )  # where the host computes
    unprofiled_ratio: float | None = (
        None  # the unprofiled step to the profiled one, where the capture timed both
    )
    unprofiled_median_ns: float | None = None


def pace(
    trace: Trace,
    account: Account,
    found: Steps,
    rank: int,
    device: int | None,
    ops: pl.DataFrame | None = None,
) -> Pace:
    """The whole steps of the rank; `ops` are its `op_calls`, asked for where no device computes."""
    windows = found.windows
    mine = kept(windows, windows["device"].eq_missing(device) & ~filled(windows["partial"]))
    steps = pl.DataFrame(
        [mine["step"], mine["start_ns"], (mine["end_ns"] - mine["start_ns"]).alias("dur_ns")]
    )
    work = shaped(trace) if ops is None else shaped_ops(ops)
    blocks = work.group_by("step").agg(pl.col("blocks").sum())
    steps = steps.join(blocks, on="step", how="left", maintain_order="left")
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    slices = _waits_apart(trace, account.of_device(device))
    parts = slices.group_by("step", "part").agg(length)
    parts = parts.join(mine[["step"]], on="step", how="semi").sort("step", "part")
    steps = _as_recorded(steps, parts)
    number = pl.lit(rank, dtype=pl.Int32).alias("rank")
    clock, heat = _gpu(trace.info.capture, device)
    return Pace(
        conform(steps.with_columns(number), STEPS),
        conform(parts.with_columns(number), PARTS),
        clock,
        heat,
        kernel_work(work, rank),
        conform(_did(trace, found, device).with_columns(number), PARTS),
        pl.DataFrame(schema=CALLED) if ops is None else count_calls(ops, rank),
        _unprofiled_ratio(trace.info.capture),
        _unprofiled_median(trace.info.capture),
    )


def _as_recorded(steps: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """The steps without what was launched before the recording, which the device does first."""
    lost = kept(parts[["step", "ns"]], parts["part"] == "unrecorded").rename({"ns": "lost"})
    if lost.is_empty():
        return steps
    left = pl.col("dur_ns") - pl.col("lost").fill_null(0)
    rows = steps.join(lost, on="step", how="left", maintain_order="left")
    return rows.with_columns(dur_ns=left).drop("lost")


def _did(trace: Trace, found: Steps, device: int | None) -> pl.DataFrame:
    """step, part, ns: what the thread of the steps was busy with in them, and since the step before."""
    if device is None or found.host.is_empty():
        return pl.DataFrame(schema={"step": pl.Int32, "part": pl.String, "ns": pl.Int64})
    charger = Charger(trace, found)
    start = pl.min_horizontal("start_ns", pl.col("end_ns").shift(1))
    spans = found.host.select(
        "end_ns",
        start_ns=start,
        gap=pl.int_range(pl.len(), dtype=pl.UInt32),
        track=pl.lit(charger.main, pl.UInt32),
    )
    pieces = charger.pieces(spans)
    rows = pieces.select(
        "part", step=take(found.host["step"], pieces["gap"]), ns=pieces["end_ns"] - pieces["start_ns"]
    )
    sums = rows.group_by("step", pl.col("part").cast(pl.String)).agg(pl.col("ns").sum())
    return _without_blocked(sums, blocked_launches(trace, found.host)).sort("step", "part")


def _without_blocked(did: pl.DataFrame, blocked: pl.DataFrame) -> pl.DataFrame:
    """What hosts did without what they spent in launches until the device took more work: that is a wait, too."""
    if blocked.is_empty():
        return did
    rows = did.join(blocked, on="step", how="left")
    lost = pl.when(pl.col("part") == _DISPATCH).then(pl.col("blocked_ns").fill_null(0)).otherwise(0)
    return rows.select("step", "part", ns=(pl.col("ns") - lost).clip(0))


def _waits_apart(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """The slices with the part `BESIDE` where a collective runs alone, but the rank works on before it ends: it does not wait there."""
    rows = slices.sort("start_ns").with_columns(pl.col("part").cast(pl.String))
    named = rows["named_by"].cast(pl.UInt32)
    end = take(trace.events["start_ns"], named) + take(trace.events["dur_ns"], named)
    at_work = pl.when(pl.col("part").is_in(_AT_WORK)).then("start_ns").backward_fill()
    goes_on = (pl.col("part") == _COLLECTIVE) & (at_work < end).fill_null(False)
    return rows.with_columns(part=pl.when(goes_on).then(pl.lit(BESIDE)).otherwise("part"))


def _gpu(capture: dict[str, Any], device: int | None) -> tuple[float | None, float | None]:
    """Mean clock and temperature of the rank's GPU while the window was open, from the sidecar's telemetry."""
    try:
        samples = [sample["gpus"] for sample in capture["telemetry"]["samples"] if sample.get("gpus")]
        rows = [gpus[device if device is not None and device < len(gpus) else 0] for gpus in samples]
        clocks = [float(row["sm_clock_mhz"]) for row in rows if "sm_clock_mhz" in row]
        heats = [float(row["temperature_celsius"]) for row in rows if "temperature_celsius" in row]
    except (KeyError, TypeError, ValueError, IndexError):
        return None, None  # no telemetry, or not as we write it
    return _mean(clocks), _mean(heats)


def _unprofiled_ratio(capture: dict[str, Any]) -> float | None:
    unprofiled, profiled = capture.get("unprofiled_step_ns"), capture.get("profiled_step_ns")
    if not isinstance(unprofiled, int | float) or not isinstance(profiled, int | float) or profiled <= 0:
        return None
    return unprofiled / profiled


def _unprofiled_median(capture: dict[str, Any]) -> float | None:
    """Of the steps that the capture timed before its window, as far as it lists them."""
    run = capture["steps"].get("before") if isinstance(capture.get("steps"), dict) else None
    found = run.get("durations_ns") if isinstance(run, dict) else None
    durations = (
        [each for each in found if isinstance(each, int) and each > 0] if isinstance(found, list) else []
    )
    return median(durations) if durations else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
