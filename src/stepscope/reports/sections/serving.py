"""Inference: the executions of a serving engine by phase, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.serving.executions import Gaps, executions, gaps, phases_table, stalled
from stepscope.analysis.serving.workload import Workload
from stepscope.lazy import dataclass
from stepscope.reports.model.report import Serving, ServingGaps, ServingPhase
from stepscope.reports.sections.section import Section


@dataclass(frozen=True)
class RankServing:
    """The kind of job on one rank, and its executions."""

    workload: Workload
    phases: pl.DataFrame
    gaps: Gaps


def of_rank(context: RankContext) -> RankServing:
    """By the rank's names and annotations."""
    rows = executions(context.whole_trace)
    stalls = stalled(rows, context.account.of_device(context.critical_device))
    return RankServing(context.workload, phases_table(rows, stalls), gaps(rows))


def joined(ranks: Sequence[RankServing], options: Options) -> Mapping[str, Any]:
    """Ranks of an engine execute the same batch together: the rank with most executions stands for all."""
    if not ranks:
        return {"serving": Serving()}
    known = [rank for rank in ranks if rank.workload.kind is not None] or ranks
    kind = known[0].workload
    fullest = max(ranks, key=lambda rank: int(rank.phases["executions"].sum()))
    return {
        "serving": Serving(
            workload=kind.kind,
            engine=kind.engine,
            evidence=kind.evidence,
            phases=[_phase(row) for row in fullest.phases.to_dicts()],
            gaps=_gaps(fullest.gaps),
        )
    }


def _phase(row: dict[str, Any]) -> ServingPhase:
    rate = row["known_tokens"] * 1e9 / row["known_ns"] if row["known_ns"] else None
    return ServingPhase(
        phase=row["phase"],
        executions=row["executions"],
        batch_size=row["batch_size"],
        tokens=row["tokens"],
        total_ns=row["total_ns"],
        mean_ns=row["total_ns"] // row["executions"],
        tokens_per_s=None if rate is None else round(rate, 3),
    )


def _gaps(found: Gaps) -> ServingGaps:
    share = round(found.total_ns / found.span_ns, 6) if found.count and found.span_ns else None
    return ServingGaps(count=found.count, total_ns=found.total_ns, median_ns=found.median_ns, share=share)


SECTION = Section("serving", of_rank, joined)
