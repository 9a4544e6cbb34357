"""The input pipeline over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.input_pipeline import InputPipeline, input_pipeline
from stepscope.report.model import Input, InputStage
from stepscope.report.options import Options
from stepscope.report.rank import RankContext
from stepscope.report.rows import capped, without_address
from stepscope.report.section import Section


def of_rank(context: RankContext) -> InputPipeline:
    """The rank's loader and its stages."""
    return input_pipeline(context.trace, context.steps, context.account)


def joined(ranks: Sequence[InputPipeline], options: Options) -> Mapping[str, Any]:
    """Shares are means over ranks, stages are summed; the verdict is that of the rank that waits longest."""
    if not ranks:
        return {"input": Input()}
    stages = (
        pl.concat([rank.stages for rank in ranks])
        .with_columns(without_address("name"))
        .group_by("name", "kind", maintain_order=True)
        .agg(pl.col("total_ns", "self_ns", "calls").sum())
        .sort("self_ns", "name", descending=[True, False])
    )
    worst = max(ranks, key=lambda rank: (rank.exposed_share, rank.share))
    found = Input(
        share=round(sum(rank.share for rank in ranks) / len(ranks), 6),
        exposed_share=round(sum(rank.exposed_share for rank in ranks) / len(ranks), 6),
        stages=msgspec.convert(capped(stages, options.limit).to_dicts(), list[InputStage]),
        stages_total=len(stages),
        verdict=worst.verdict,
    )
    return {"input": found}


SECTION = Section("input", of_rank, joined)
