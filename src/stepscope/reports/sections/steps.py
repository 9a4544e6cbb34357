"""The steps: one row per rank, device and step, and figures over the complete ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

import polars as pl

from stepscope.analysis.basis import UNPROFILED, Basis, step_basis
from stepscope.analysis.context import RankContext
from stepscope.analysis.cut_off import is_cut
from stepscope.analysis.options import Options
from stepscope.analysis.parts import BUSY_PARTS
from stepscope.analysis.steps.sample import Sample
from stepscope.analysis.steps.work import busy_time
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import REPLAY_FITS
from stepscope.reports.model.report import StepRow, Steps, StepSample, Unprofiled
from stepscope.reports.sections.section import Section
from stepscope.reports.wording.basis import sentence
from stepscope.statistics.slow_steps import slow_limit
from stepscope.statistics.summary import spread


@dataclass(frozen=True)
class RankSteps:
    """The rows of one rank; those of its critical device are the rank's own."""

    source: str
    name: str | None
    critical_device: int | None
    rows: list[StepRow]
    inflation: Inflation | None = None
    confidence: str | None = None
    pieces: int = 0
    warm_up: str | None = None
    warm_ups: int = 0
    busy_ns: int = 0  # device time in the steps
    recorded_ns: int = 0  # device time of the recording
    region: str | None = None
    regions: tuple[str, ...] = ()
    basis: Basis | None = None
    sample: Sample | None = None
    peak_bytes: int = 0  # of memory; only asked of many ranks

    def own(self) -> list[StepRow]:
        """The rows of the critical device, without partial steps."""
        return [row for row in self.rows if row.device == self.critical_device and not row.partial]


@dataclass(frozen=True)
class Inflation:
    """How many times as long a profiled step is, and how that is known."""

    times: float
    source: str


def inflation(context: RankContext) -> Inflation | None:
    """By the unprofiled steps that the capture timed, else by the replay without the profiler's cost per event.

    No replay of a file that was cut off says it, nor one without a device, or much longer or shorter than the steps were.
    """
    capture = context.trace.info.capture
    profiled, unprofiled = capture.get("profiled_step_ns"), capture.get("unprofiled_step_ns")
    if isinstance(profiled, int | float) and isinstance(unprofiled, int | float) and unprofiled > 0:
        return Inflation(round(profiled / unprofiled, 3), "measured")
    if is_cut(context.whole_trace) or context.critical_device is None:
        return None
    plan = context.sampled.plan
    recorded, without = plan.as_recorded().step_ns(), plan.step_ns()
    windows = context.sampled.steps.windows.filter(pl.col("device").eq_missing(context.critical_device))
    measured = int((windows["end_ns"] - windows["start_ns"]).sum()) / max(1, len(windows))
    if not measured or without <= 0 or abs(recorded / measured - 1) > REPLAY_FITS:
        return None
    # The device works as long without the profiler, of which graphs cost the host hardly anything.
    most = max(1.0, measured * len(windows) / max(1, plan.busiest_ns()))
    return Inflation(round(min(most, recorded / without), 3), "estimated")


def of_rank(context: RankContext) -> RankSteps:
    """All steps on all devices of the rank."""
    steps = context.steps
    if steps.windows.is_empty():
        return RankSteps(steps.source, steps.name, None, [], confidence=steps.confidence)
    # The replay first: meanwhile another section makes the account, which the rows want.
    slowed = None if context.in_brief else inflation(context)
    peaks = (found.peak_bytes or 0 for found in context.memory) if context.in_brief else ()
    rows = _rows(context)
    busy = context.parts.filter(pl.col("part").is_in(BUSY_PARTS))
    found = RankSteps(
        steps.source, steps.name, context.critical_device, rows, slowed, steps.confidence, steps.pieces,
        steps.warm_up, steps.warm_ups, int(busy["ns"].sum()), busy_time(context.whole_trace),
        steps.region, steps.regions, sample=context.sample, peak_bytes=max(peaks, default=0),
    )  # fmt: skip
    limit = slow_limit([row.duration_ns for row in found.own()])
    own = [row.duration_ns for row in found.own()]
    found = (
        replace(found, basis=step_basis(context.trace, sum(own) / len(own), steps.source)) if own else found
    )
    for row in rows:
        row.outlier = row.duration_ns > limit and not row.partial
    return found


def joined(ranks: Sequence[RankSteps], options: Options) -> Mapping[str, Any]:
    """Rows of all ranks; the figures are over the critical device of each."""
    own = [row for rank in ranks for row in rank.own()]
    rows = [row for rank in ranks for row in rank.rows]
    marked = next((rank for rank in ranks if rank.rows), ranks[0] if ranks else None)
    figures = spread([row.duration_ns for row in own])
    slowed = max(
        (rank.inflation for rank in ranks if rank.inflation), key=lambda one: one.times, default=None
    )
    steps = Steps(
        source=marked.source if marked else "none",
        name=marked.name if marked else None,
        region=marked.region if marked else None,
        regions=list(dict.fromkeys(name for rank in ranks for name in rank.regions)),
        count=len({row.step for row in rows}),
        confidence=marked.confidence if marked else None,
        covers=_covers(ranks),
        warm_up=marked.warm_up if marked else None,
        warm_ups=marked.warm_ups if marked else 0,
        partial=max((rank.pieces for rank in ranks), default=0),
        outliers=len({row.step for row in own if row.outlier}),
        critical_devices={str(row.rank): rank.critical_device for rank in ranks for row in rank.rows[:1]},
        rows=rows,
        inflation=slowed.times if slowed else None,
        inflation_source=slowed.source if slowed else None,
        **(asdict(figures) if figures else {}),
    )
    if marked is not None and marked.sample is not None:
        steps.sample = StepSample(**asdict(marked.sample))
    _set_basis(steps, [rank.basis for rank in ranks if rank.basis is not None])
    steps.sentence = sentence(steps)
    return {"steps": steps}


def _covers(ranks: Sequence[RankSteps]) -> float | None:
    recorded = sum(rank.recorded_ns for rank in ranks)
    return round(sum(rank.busy_ns for rank in ranks) / recorded, 6) if recorded else None


def _set_basis(steps: Steps, found: Sequence[Basis]) -> None:
    """Of several ranks that of the slowest unprofiled one, if all were timed; else what was recorded."""
    steps.basis_ns = steps.mean_ns
    if not found or any(basis.source != UNPROFILED for basis in found):
        return
    slowest = max(found, key=lambda basis: basis.ns)
    known = {"low_ns": slowest.low_ns, "high_ns": slowest.high_ns, "host_ns": slowest.host_ns}
    steps.basis, steps.basis_ns = UNPROFILED, round(slowest.ns)
    steps.unprofiled = Unprofiled(
        mean_ns=round(slowest.ns),
        count=slowest.count,
        **{name: None if value is None else round(value) for name, value in known.items()},
    )


def estimate(steps: Steps, shares: Sequence[float]) -> None:
    """How long the step is without the profiler, where no rank was timed: what the findings' replay leaves of it, by rank."""
    if steps.basis_ns is not None and steps.basis != UNPROFILED and shares:
        steps.estimated_ns = round(fmean(shares) * steps.basis_ns)
        steps.sentence = sentence(steps)


def _rows(context: RankContext) -> list[StepRow]:
    by_step = context.parts.group_by("device", "step").agg("part", "ns").cast({"part": pl.List(pl.String)})
    parts: dict[tuple[int | None, int], dict[str, int]] = {
        (device, step): dict(zip(names, times, strict=True))
        for device, step, names, times in by_step.iter_rows()
    }
    columns = context.steps.windows.select(
        "device", "step", "start_ns", pl.col("end_ns") - pl.col("start_ns"), "partial"
    )
    return [
        StepRow(
            rank=context.rank,
            device=device,
            step=step,
            start_ns=start,
            duration_ns=duration,
            parts=parts.get((device, step), {}),
            partial=partial,
        )
        for device, step, start, duration, partial in columns.iter_rows()
    ]


SECTION = Section("steps", of_rank, joined)
