"""Kernels that only turn one memory layout into another."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.file_work import instruction_facts
from stepscope.registers.calibration.kernels import (
    NORM_CHANNELS_LAST_LEAST,
    NORM_CHANNELS_LAST_MOST,
)
from stepscope.registers.policy.findings import WORTH_SHOWING

_TURNS_LAYOUT = r"(?i)nchwToNhwc|nhwcToNchw|nhwcAddPadding|transpose_readWrite"
# XLA's categories of instructions that change where numbers are, and not the numbers.
_MOVES = ("copy", "data formatting", "transpose")
_NORMALISES = r"batch_norm_(backward|collect_statistics|transform_input)"


def find(case: Case) -> Finding | None:
    """Kernels that only turn one memory layout into another."""
    names = case.kernels["name"].unique().drop_nulls()
    turning = names.filter(names.cast(pl.String).str.contains(_TURNS_LAYOUT))
    chosen = case.kernels.filter(pl.col("name").is_in(turning.implode())).select(
        "event", least=pl.lit(0.0), most=pl.lit(0.0)
    )
    chosen = pl.concat([chosen, _of_programs(case)]).unique("event", maintain_order=True)
    if len(turning):
        # Normalisation in the other layout reads memory in a slower order.
        slower = names.filter(names.cast(pl.String).str.contains(_NORMALISES))
        slower = slower.filter(~slower.cast(pl.String).str.contains("channels_last"))
        others = case.kernels.filter(pl.col("name").is_in(slower.implode()))
        chosen = pl.concat(
            [
                chosen,
                others.select(
                    "event", least=pl.lit(NORM_CHANNELS_LAST_LEAST), most=pl.lit(NORM_CHANNELS_LAST_MOST)
                ),
            ]
        )
    return of_kernels(
        case,
        RULE,
        chosen,
        "only converts tensors from one memory layout to another.",
        WORTH_SHOWING,
    )


def _of_programs(case: Case) -> pl.DataFrame:
    """Instructions of TPUs that only copy or reorder what is in the device's memory."""
    facts = instruction_facts(case.trace)
    moving = facts.filter(pl.col("category").is_in(_MOVES))["event"]
    return case.kernels.filter(pl.col("event").is_in(moving.implode())).select(
        "event", least=pl.lit(0.0), most=pl.lit(0.0)
    )


RULE: Rule[Case] = Rule(
    code="layout-conversion",
    title="Kernels convert between memory layouts",
    turn=200,
    page="kernels",
    owns="kernels that only change the memory layout, and the batch normalisation around them",
    change="none of their time remains, and 25 to 55 % of the normalisation's",
    fix={
        "pytorch": "Keep one layout: model.to(memory_format=torch.channels_last) and the same for the inputs.",
        ANY: "Keep one memory layout throughout the model.",
    },
    find=find,
    needs_device=True,
)
