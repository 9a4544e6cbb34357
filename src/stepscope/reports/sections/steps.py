"""The steps: one row per rank, device and step, and figures over the complete ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.reports.model.report import StepRow, Steps
from stepscope.reports.sections.section import Section
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

    def own(self) -> list[StepRow]:
        """The rows of the critical device, without partial steps."""
        return [row for row in self.rows if row.device == self.critical_device and not row.partial]


@dataclass(frozen=True)
class Inflation:
    """How many times as long a profiled step is, and how that is known."""

    times: float
    source: str


def inflation(context: RankContext) -> Inflation | None:
    """By the unprofiled steps that the capture timed, else by the replay without the profiler's cost per event."""
    recorded = context.plan.as_recorded().step_ns()
    without = context.plan.step_ns()
    capture = context.trace.info.capture
    profiled, unprofiled = capture.get("profiled_step_ns"), capture.get("unprofiled_step_ns")
    if isinstance(profiled, int | float) and isinstance(unprofiled, int | float) and unprofiled > 0:
        return Inflation(round(profiled / unprofiled, 3), "measured")
    return Inflation(round(recorded / without, 3), "estimated") if without > 0 else None


def of_rank(context: RankContext) -> RankSteps:
    """All steps on all devices of the rank."""
    steps = context.steps
    if steps.windows.is_empty():
        return RankSteps(steps.source, steps.name, None, [])
    # The replay first: meanwhile another section makes the account, which the rows want.
    slowed = inflation(context)
    rows = _rows(context)
    found = RankSteps(steps.source, steps.name, context.critical_device, rows, slowed)
    limit = slow_limit([row.duration_ns for row in found.own()])
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
        count=len({row.step for row in rows}),
        partial=len({row.step for row in rows if row.partial}),
        outliers=len({row.step for row in own if row.outlier}),
        critical_devices={str(row.rank): rank.critical_device for rank in ranks for row in rank.rows[:1]},
        rows=rows,
        inflation=slowed.times if slowed else None,
        inflation_source=slowed.source if slowed else None,
        **(asdict(figures) if figures else {}),
    )
    return {"steps": steps}


def _rows(context: RankContext) -> list[StepRow]:
    parts: dict[tuple[int | None, int], dict[str, int]] = {}
    for device, step, part, ns in context.parts.select("device", "step", "part", "ns").iter_rows():
        parts.setdefault((device, step), {})[part] = ns
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
