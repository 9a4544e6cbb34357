"""The time that findings own: for their rows in the viewer, and for the events behind them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.finding import ranked
from stepscope.analysis.findings.owned import owned_slices
from stepscope.analysis.part_column import Part
from stepscope.server.runs.opened import OpenedRun
from stepscope.trace.frames import Schema, conform, empty

_SCHEMA: Schema = {
    "code": pl.String, "title": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "part": Part, "named_by": pl.UInt32,
    "detail": pl.UInt32, "thread": pl.UInt32, "step": pl.Int32, "device": pl.Int32, "ns": pl.Int64,
}  # fmt: skip


def owned_time(context: RankContext) -> pl.DataFrame:
    """The slices of the account that each finding owns, with its code and title; findings in the order of the report."""
    nothing = empty(_SCHEMA)
    if context.steps.windows.is_empty():
        return nothing
    owned = owned_slices(context.case)
    frames = [
        conform(owned[each.code].with_columns(code=pl.lit(each.code), title=pl.lit(each.title)), _SCHEMA)
        for each in ranked(context.case.earlier)
    ]
    return pl.concat([nothing, *frames])


def kept_owned_time(run: OpenedRun, context: RankContext) -> pl.DataFrame:
    """The same, made once for a rank of the run: by its report, or by the first caller. Named as the frames of evidence are."""
    return run.kept(f"evidence owned_time {context.rank}", lambda: owned_time(context))
