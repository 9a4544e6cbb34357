"""Fused attention that reads a mask which is the same for all samples, as a causal one is."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.shapes import held_shapes, recorded_strides
from stepscope.registers.calibration.kernels import FUSED_ATTENTION_BEST
from stepscope.registers.policy.findings import MAJORITY, UNSURE_KERNELS
from stepscope.registers.policy.useless_work import WITHOUT_MASK_LEAST, WITHOUT_MASK_MOST

_CALL = "aten::scaled_dot_product_attention"


def find(case: Case) -> Finding | None:
    """Most calls get a square mask of their own length without a sample or a head."""
    calls = case.ops.filter(pl.col("name").cast(pl.String) == _CALL, pl.col("step").is_not_null())
    if calls.is_empty() or _count_masked(case, calls) <= MAJORITY * len(calls):
        return None
    kernels = case.compute.kernels.filter(pl.col("class") == "attention", pl.col("time_ns") > 0)
    peak = case.peaks.flops_per_s("bf16") if case.peaks else None
    # The causal half at the best speed of fused attention.
    bound = (
        pl.col("flops") / 2 / (FUSED_ATTENTION_BEST * peak) * 1e9 / pl.col("time_ns") if peak else pl.lit(0.0)
    )
    chosen = kernels.select(
        "event",
        least=pl.max_horizontal(bound.fill_null(0.0), pl.lit(WITHOUT_MASK_LEAST)).clip(upper_bound=1.0),
        most=pl.max_horizontal(bound.fill_null(0.0), pl.lit(WITHOUT_MASK_MOST)).clip(upper_bound=1.0),
    )
    why = "is spent in attention that reads a mask which all samples share; a causal mask need not be read, and half of the work need not be done."
    return of_kernels(case, RULE, chosen, why)


def _count_masked(case: Case, calls: pl.DataFrame) -> int:
    """How many calls get a mask that memory holds once; expanded to the samples, it still is one."""
    given = calls.select(op="event", shapes=pl.col("shapes").cast(pl.String)).join(
        recorded_strides(case.trace), on="op", how="left", maintain_order="left"
    )
    return sum(
        int(count)
        for shapes, strides, count in given.group_by("shapes", "strides").len().iter_rows()
        if _has_shared_mask(shapes, strides)
    )


def _has_shared_mask(shapes: str | None, strides: str | None) -> bool:
    try:
        query, _, _, mask, *_ = held_shapes(shapes, strides)
        *_, length, _ = query
        *around, rows, columns = mask
    except ValueError:
        return False
    return rows == columns == length > 1 and all(side == 1 for side in around)


RULE: Rule[Case] = Rule(
    code="masked-attention",
    title="Attention reads a mask that it need not read",
    turn=182,
    page="kernels",
    certainty=UNSURE_KERNELS,
    owns="kernels of fused attention, if most calls get a square mask that samples and heads share",
    change="25 to 60 % of their time remains, but no less than the causal half takes at the best speed of fused attention",
    fix={
        "pytorch": "Use F.scaled_dot_product_attention(q, k, v, is_causal=True) instead of attn_mask if the mask is causal: FlashAttention then skips the masked half and reads no mask. For windows and documents: torch.nn.attention.flex_attention.",
        ANY: "Say so instead of passing the mask, if it is causal.",
    },
    find=find,
    needs_device=True,
)
