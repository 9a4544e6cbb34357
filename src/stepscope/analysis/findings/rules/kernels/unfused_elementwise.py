"""Chains of elementwise and reduction kernels that one fused kernel could replace."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import FUSED_CHAIN_BANDWIDTH, FUSED_CHAIN_BEST, FUSED_CHAIN_WORST
from stepscope.registers.policy.findings import (
    FORMULA_TRAFFIC,
    FUSING_ADVICE_LEAST,
    FUSING_GAIN_LEAST,
    SURE_FUSION,
)
from stepscope.units import size


def find(case: Case) -> Finding | None:
    """Runs of kernels whose intermediate tensors go through memory, where a compiler would keep them on chip."""
    bandwidth = case.peaks.bytes_per_s if case.peaks else None
    if not bandwidth or case.trace.info.framework not in ("pytorch", "tensorflow"):
        return None  # XLA's programs are fused already
    chains = _fused(case, bandwidth)
    formulas = chains.filter(pl.col("bytes_total") >= FORMULA_TRAFFIC * pl.col("bytes_in_out"))
    is_formula = _saves(case, formulas) >= FUSING_GAIN_LEAST
    if not is_formula and _saves(case, chains) < FUSING_ADVICE_LEAST:
        return None
    # A fused op in place of the formula gains its chains; a compiler gains the others, too.
    surely = pl.col("chain").is_in(formulas["chain"].implode()) | pl.lit(not is_formula)
    chains = chains.with_columns(most=pl.when(surely).then("most").otherwise(1.0))
    chosen = case.compute.kernels.join(chains, on="chain").filter(pl.col("bytes").is_not_null())
    saved = int((chains["bytes_total"] - chains["bytes_in_out"]).sum() / max(1, len(case.lengths)))
    count = int(chains["kernels"].sum() / max(1, len(case.lengths)))
    why = (
        f"is spent in {count:,} elementwise, reduction and copy kernels that follow one another. Fused, "
        f"{size(saved)} of intermediate tensors a step would stay on chip."
    )
    found = of_kernels(
        case,
        RULE,
        chosen.select("event", "least", "most"),
        why,
        evidence={"kernels_per_step": count, "intermediate_bytes_per_step": saved},
    )
    if found is not None and not is_formula:
        found.class_ = "advice"  # every eager job has some
    return found


def _saves(case: Case, chains: pl.DataFrame) -> float:
    """What fusing them saves, as a share of the step, halfway between best and worst."""
    left = (chains["least"] + chains["most"]) / 2
    return float((chains["time_ns"] * (1 - left)).sum()) / max(1, len(case.lengths)) / case.step_ns


def _fused(case: Case, bandwidth: float) -> pl.DataFrame:
    """The chains with what fusion leaves of their time: the bytes that enter and leave them, at the rate of a fused kernel."""
    fused_ns = pl.col("bytes_in_out") / (FUSED_CHAIN_BANDWIDTH * bandwidth) * 1e9
    left = (fused_ns / pl.col("time_ns").clip(lower_bound=1)).clip(upper_bound=1.0)
    mine = case.compute.chains.filter(pl.col("device").eq_missing(case.device), pl.col("bytes_in_out") > 0)
    return mine.select(
        "chain",
        "kernels",
        "time_ns",
        "bytes_total",
        "bytes_in_out",
        least=(FUSED_CHAIN_BEST * left).clip(upper_bound=1.0),
        most=(FUSED_CHAIN_WORST * left).clip(upper_bound=1.0),
    )


RULE: Rule[Case] = Rule(
    code="unfused-elementwise",
    title="Elementwise kernels pass tensors through memory one by one",
    turn=204,
    page="kernels",
    certainty=SURE_FUSION,
    owns="runs of elementwise, reduction and copy kernels between matrix products",
    change="each run takes 1.2 to 2.2 times what reading its inputs and writing its outputs takes at 60 % of the memory's bandwidth",
    fix={
        "pytorch": "Let a compiler fuse them: torch.compile(model), or the fused version of the layer (torch.nn.functional.gelu, layer_norm, rms_norm, cross_entropy) instead of its formula.",
        "tensorflow": "Compile the step: tf.function(jit_compile=True).",
        ANY: "Let a compiler fuse them into one kernel.",
    },
    find=find,
)
