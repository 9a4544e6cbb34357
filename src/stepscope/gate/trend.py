"""Whether a run is slower than the one before it, by its kept figures alone and with the gate's own noise.

`StepNoise` is what the gate would resample of a run, reduced to a few numbers: two of them give the noise of the difference of their
mean steps as `diffs.noise` defines it, without pairs of steps and without the speeds of both machines, which only profiles show.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import polars as pl

from stepscope.diffs.data.samples import SCHEMAS, Samples, conform_table
from stepscope.diffs.noise.crossed import Layout
from stepscope.diffs.noise.estimate import estimate_noise_of_one
from stepscope.diffs.noise.judge import Ground
from stepscope.diffs.noise.machine_speed import Speeds, find_clock
from stepscope.gate.evidence import has_steps
from stepscope.registers.policy.diffs import LEAST_DIFFERENCE
from stepscope.reports.model.report import Report
from stepscope.statistics.noise import Noise
from stepscope.statistics.student_t import MANY
from stepscope.trace.frames import empty


class StepNoise(msgspec.Struct, kw_only=True, frozen=True):
    """The mean recorded step, its standard error within the run, and how much two runs of one job differ (share and ns)."""

    mean_ns: float
    error_ns: float
    freedom: float
    run_share: float
    run_least_ns: float


class Change(msgspec.Struct, kw_only=True, frozen=True):
    """From the run before to this one. `margin_ns`: noise alone exceeds it in 5 % of pairs."""

    difference_ns: float
    margin_ns: float
    verdict: Literal["slower", "faster", "same"]


def measure_steps(report: Report) -> StepNoise | None:
    """What the steps of a report say about themselves; None without steps, or with a single one."""
    samples = _samples_of(report) if has_steps(report) else None
    if samples is None or samples.cells.is_empty():
        return None
    steps: list[float] = samples.cells["ns"].to_list()
    own = estimate_noise_of_one(steps, Layout(samples.cells), 0.0)
    if own is None:
        return None
    run = Ground(samples, samples, Speeds()).runs.of_step(_sizes(samples))
    return StepNoise(
        mean_ns=sum(steps) / len(steps),
        error_ns=own.error,
        freedom=own.df,
        run_share=run.share,
        run_least_ns=run.least,
    )


def compare_steps(before: StepNoise, after: StepNoise) -> Change:
    """The difference of the mean steps, and whether it is more than noise."""
    within = math.hypot(before.error_ns, after.error_ns)
    longer = max(before.mean_ns, after.mean_ns)
    share = max(before.run_share, after.run_share) * longer
    error = math.hypot(within, share, max(before.run_least_ns, after.run_least_ns))
    margin = Noise(error, _freedom(error, within, before.freedom + after.freedom)).margin
    difference = after.mean_ns - before.mean_ns
    matters = abs(difference) > max(margin, LEAST_DIFFERENCE * longer)
    verdict: Literal["slower", "faster", "same"] = "same"
    if matters:
        verdict = "slower" if difference > 0 else "faster"
    return Change(difference_ns=difference, margin_ns=margin, verdict=verdict)


def _freedom(error: float, within: float, freedom: float) -> float:
    """Only the spread of steps was estimated from few values; that of runs is calibrated."""
    return min(MANY, freedom * (error / within) ** 4) if within and freedom > 0 else MANY


def _sizes(samples: Samples) -> dict[str, float]:
    """How much of the steps follows which clock."""
    sizes: dict[str, float] = {}
    for part, ns in samples.parts.group_by("part").agg(pl.col("ns").sum()).iter_rows():
        clock = find_clock(str(part))
        sizes[clock] = sizes.get(clock, 0.0) + float(ns)
    return sizes


def _samples_of(report: Report) -> Samples:
    """The steps of each rank's critical device, without partial ones."""
    critical = report.steps.critical_devices
    rows = [row for row in report.steps.rows if critical.get(str(row.rank), row.device) == row.device]
    whole = [row for row in rows if not row.partial] or rows
    number = [{"recording": 0, "rank": row.rank, "step": row.step, "ns": row.duration_ns} for row in whole]
    parts = [
        {"recording": 0, "rank": row.rank, "step": row.step, "part": part, "ns": ns}
        for row in whole
        for part, ns in row.parts.items()
    ]
    tables = {name: empty(schema) for name, schema in SCHEMAS.items()}
    if number:
        tables["cells"] = conform_table("cells", pl.DataFrame(number))
    if parts:
        tables["parts"] = conform_table("parts", pl.DataFrame(parts))
    return Samples(**tables)
