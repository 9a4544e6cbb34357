"""The steps: one row per rank, device and step, and figures over the complete ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from stepscope.report.model import StepRow, Steps
from stepscope.report.options import Options
from stepscope.report.rank import RankContext
from stepscope.report.section import Section
from stepscope.report.statistics import outlier_limit, spread


@dataclass(frozen=True)
class RankSteps:
    """The rows of one rank; those of its critical device are the rank's own."""

    source: str
    name: str | None
    critical_device: int | None
    rows: list[StepRow]

    def own(self) -> list[StepRow]:
        """The rows of the critical device, without partial steps."""
        return [row for row in self.rows if row.device == self.critical_device and not row.partial]


def of_rank(context: RankContext) -> RankSteps:
    """All steps on all devices of the rank."""
    steps = context.steps
    if steps.windows.is_empty():
        return RankSteps(steps.source, steps.name, None, [])
    rows = _rows(context)
    found = RankSteps(steps.source, steps.name, context.critical_device, rows)
    limit = outlier_limit([row.duration_ns for row in found.own()])
    for row in rows:
        row.outlier = row.duration_ns > limit and not row.partial
    return found


def joined(ranks: Sequence[RankSteps], options: Options) -> Mapping[str, Any]:
    """Rows of all ranks; the figures are over the critical device of each."""
    own = [row for rank in ranks for row in rank.own()]
    rows = [row for rank in ranks for row in rank.rows]
    marked = next((rank for rank in ranks if rank.rows), ranks[0] if ranks else None)
    figures = spread([row.duration_ns for row in own])
    steps = Steps(
        source=marked.source if marked else "none",
        name=marked.name if marked else None,
        count=len({row.step for row in rows}),
        partial=len({row.step for row in rows if row.partial}),
        outliers=len({row.step for row in own if row.outlier}),
        critical_devices={str(row.rank): rank.critical_device for rank in ranks for row in rank.rows[:1]},
        rows=rows,
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
