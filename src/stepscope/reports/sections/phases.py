"""The phases of the steps, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.parts import PARTS
from stepscope.analysis.phases import phases
from stepscope.lazy import dataclass
from stepscope.reports.model.report import PhaseRow
from stepscope.reports.sections.section import Section


@dataclass(frozen=True)
class RankPhases:
    """The rank's phases, and the time of its steps on the host."""

    rows: pl.DataFrame
    step_ns: int


def of_rank(context: RankContext) -> RankPhases:
    """By the account of the rank's critical device."""
    host = context.steps.host
    step_ns = int((host["end_ns"] - host["start_ns"]).sum()) if len(host) else 0
    if not step_ns:
        return RankPhases(pl.DataFrame(), 0)
    return RankPhases(phases(context.trace, context.steps, context.account, context.critical_device), step_ns)


def joined(ranks: Sequence[RankPhases], options: Options) -> Mapping[str, Any]:
    """Summed over ranks; `share` is of the time of all steps on the host."""
    known = [rank.rows for rank in ranks if len(rank.rows)]
    if not known:
        return {"phases": []}
    step_ns = sum(rank.step_ns for rank in ranks)
    rows = pl.concat(known)
    heads = pl.concat([rank.select("name", "calls", "total_ns").unique() for rank in known])
    summed = heads.group_by("name").agg(pl.col("calls", "total_ns").sum())
    parts: dict[str, dict[str, int]] = {}
    for name, part, ns in rows.group_by("name", "part").agg(pl.col("ns").sum()).iter_rows():
        if part is not None:
            parts.setdefault(name, {})[part] = ns
    found = [
        PhaseRow(
            name=name,
            calls=calls,
            total_ns=total,
            share=round(total / step_ns, 6),
            parts={part: parts.get(name, {})[part] for part in PARTS if part in parts.get(name, {})},
        )
        for name, calls, total in summed.sort("total_ns", "name", descending=[True, False]).iter_rows()
    ]
    return {"phases": found}


SECTION = Section("phases", of_rank, joined)
