"""The input pipeline over all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.context import RankContext
from stepscope.analysis.input_pipeline import InputPipeline, input_pipeline
from stepscope.analysis.options import Options
from stepscope.registers.policy.findings import INPUT_MODERATE
from stepscope.reports.columns import capped, without_address
from stepscope.reports.model.report import Input, InputStage
from stepscope.reports.sections.section import Section


def of_rank(context: RankContext) -> tuple[int, InputPipeline]:
    """The rank's loader and its stages, by the account of its critical device, as the breakdown has it."""
    return context.rank, input_pipeline(context.trace, context.steps, _of_critical_device(context))


def _of_critical_device(context: RankContext) -> Account:
    """That of the rank itself where it has one device: what was summed of it is summed once."""
    slices = context.account.slices
    mine = slices.filter(pl.col("device").eq_missing(context.critical_device))
    return context.account if len(mine) == len(slices) else replace(context.account, slices=mine)


def joined(ranks: Sequence[tuple[int, InputPipeline]], options: Options) -> Mapping[str, Any]:
    """Shares are of all ranks' time, stages are summed; the verdict is that of the rank that waits longest."""
    if not ranks:
        return {"input": Input()}
    all_found = [found for _, found in ranks]
    stages = (
        pl.concat([rank.stages for rank in all_found])
        .with_columns(without_address("name"))
        .group_by("name", "kind", maintain_order=True)
        .agg(pl.col("total_ns", "self_ns", "calls").sum())
        .sort("self_ns", "name", descending=[True, False])
    )
    number, worst = max(ranks, key=lambda pair: (pair[1].waited.usual_share, pair[1].share))
    whose = (
        f"On rank {number}, which waits longest: "
        if len(ranks) > 1 and worst.waited.usual_share >= INPUT_MODERATE
        else ""
    )
    found = Input(
        share=_share((rank.loader_ns, rank.step_ns) for rank in all_found),
        exposed_share=_share((rank.waited.input_ns, rank.waited.all_ns) for rank in all_found),
        stages=msgspec.convert(capped(stages, options.limit).to_dicts(), list[InputStage]),
        stages_total=len(stages),
        verdict=whose + (worst.verdict[:1].lower() + worst.verdict[1:] if whose else worst.verdict),
    )
    return {"input": found}


def _share(pairs: Iterable[tuple[int, int]]) -> float:
    """All of the first of all of the second."""
    some, whole = (sum(each) for each in zip(*pairs, strict=True))
    return round(min(1.0, some / whole), 6) if whole else 0.0


SECTION = Section("input", of_rank, joined)
