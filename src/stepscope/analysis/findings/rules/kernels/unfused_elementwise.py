"""Chains of elementwise and reduction kernels that one fused kernel could replace, and layers that are written out op by op."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.written_out import NORMS, written_out
from stepscope.registers.calibration.fused_layers import (
    FUSED_GRADIENT_BEST,
    FUSED_GRADIENT_WORST,
    FUSED_GRADIENT_WORST_OF_NORMS,
    FUSED_LAYER_BEST,
    FUSED_LAYER_WORST,
)
from stepscope.registers.calibration.kernels import (
    FLOPS_OF_PEAK_INSTRUCTION,
    FUSED_CHAIN_BANDWIDTH,
    FUSED_CHAIN_BEST,
    FUSED_CHAIN_WORST,
)
from stepscope.registers.policy.compute import FORMULAS_ALONE
from stepscope.registers.policy.device_findings import (
    FORMULA_TRAFFIC,
    FUSING_ADVICE_LEAST,
    FUSING_GAIN_LEAST,
    SURE_FUSION,
)
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING
from stepscope.units import size

_BROADCAST = "broadcast-product"
# Arithmetic of which formulas are made; a layer of the framework is one op with a name of its own.
_PRIMITIVE = (
    r"^aten::(add|sub|rsub|mul|div|pow|square|neg|abs|exp|expm1|log|log1p|sqrt|rsqrt|reciprocal|tanh|erf|sigmoid|sin|cos"
    r"|clamp|clamp_min|clamp_max|minimum|maximum|where|mean|sum|var|std|eq|ne|lt|le|gt|ge)_?$"
)
_LAYER = (
    r"^aten::_?(native_|fused_|cudnn_|thnn_)?((layer|batch|group|instance|rms)_norm|(log_)?softmax|(leaky_)?r?relu6?|threshold|gelu|silu|mish|c?elu|selu"
    r"|softplus|hardswish|hardsigmoid|hardtanh|(feature_|alpha_)?dropout|\w*loss\w*|\w*pool\w*|binary_cross_entropy)"
)


def find(case: Case) -> Finding | None:
    """Runs of kernels whose intermediate tensors go through memory, where a compiler would keep them on chip."""
    bandwidth = case.peaks.bytes_per_s if case.peaks else None
    if not bandwidth or case.trace.info.framework not in ("pytorch", "tensorflow"):
        return None  # XLA's programs are fused already
    chains = _without_broadcasts(case, _fused(case, bandwidth))
    formulas = chains.filter(pl.col("bytes_total") >= FORMULA_TRAFFIC * pl.col("bytes_in_out"))
    layers = _written_out(case, chains, formulas)
    if _saves(case, formulas) + _saves(case, layers) >= FUSING_GAIN_LEAST:
        return _promised(case, chains, formulas, layers)
    return _advised(case, chains) if _saves(case, chains) >= FUSING_ADVICE_LEAST else None


def _written_out(case: Case, chains: pl.DataFrame, formulas: pl.DataFrame) -> pl.DataFrame:
    """The kernels of layers that are written out op by op in the other chains, with what one op for each leaves of their time."""
    in_chains = pl.col("chain").is_in(chains["chain"].implode())
    in_formulas = pl.col("chain").is_in(formulas["chain"].implode())
    free = case.unclaimed.filter(pl.col("part") == "compute")["named_by"].unique()
    found = written_out(case.trace, case.compute.kernels.filter(in_chains, ~in_formulas))
    rows = found.filter(pl.col("event").is_in(free.implode()))
    norm = pl.when(pl.col("layer").is_in(NORMS)).then(FUSED_GRADIENT_WORST_OF_NORMS)
    passes = {
        "least": pl.when("backward").then(FUSED_GRADIENT_BEST).otherwise(FUSED_LAYER_BEST),
        "most": pl.when("backward").then(norm.otherwise(FUSED_GRADIENT_WORST)).otherwise(FUSED_LAYER_WORST),
    }
    whole = pl.col("whole_ns").clip(lower_bound=1)
    left = [
        (times * pl.col("pass_ns") / whole).clip(upper_bound=1.0).alias(name)
        for name, times in passes.items()
    ]
    times = case.compute.kernels.select("event", "time_ns")
    return rows.with_columns(left).join(times, on="event")


def _without_broadcasts(case: Case, chains: pl.DataFrame) -> pl.DataFrame:
    """Without those that a matrix product replaces for the most part: fused, they would still compute every element."""
    if not case.has_found(_BROADCAST):
        return chains
    computing = pl.col("part") == "compute"
    mine, free = (rows.filter(computing)["named_by"].unique() for rows in (case.all_slices, case.unclaimed))
    claimed = pl.col("event").is_in(mine.implode()) & ~pl.col("event").is_in(free.implode())
    kernels = case.compute.kernels.drop_nulls("chain")
    by_chain = kernels.group_by("chain").agg(
        ns=pl.col("time_ns").sum(), claimed_ns=pl.col("time_ns").filter(claimed).sum()
    )
    replaced = by_chain.filter(pl.col("claimed_ns") > MAJORITY * pl.col("ns"))
    return chains.filter(~pl.col("chain").is_in(replaced["chain"].implode()))


def _promised(
    case: Case, chains: pl.DataFrame, formulas: pl.DataFrame, layers: pl.DataFrame
) -> Finding | None:
    """A fused op in place of the formula gains its chains, one in place of a layer its kernels; a compiler gains the others, too.

    Where these hardly count, the fix needs no compiler: what is around the formula stays as it is.
    """
    surely = pl.col("chain").is_in(formulas["chain"].implode())
    known = case.compute.kernels.filter(pl.col("bytes").is_not_null())
    stays = ["most", "least"] if _are_alone(known, chains, formulas, layers) else ["most"]
    judged = chains.with_columns(pl.when(surely).then(name).otherwise(1.0).alias(name) for name in stays)
    chosen = known.join(judged, on="chain")
    chosen = _with_layers(
        chosen.with_columns(_beside_layers(case, name).alias(name) for name in stays), layers
    )
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(chosen["event"].implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    why, evidence = _traffic(case, chains, owned)
    # Those of another finding, such as copies, are its to save.
    mine = chosen.filter(pl.col("event").is_in(owned["named_by"].unique().implode()))
    shorter = shorten_kernels(case, mine.select("event", "least", "most"))
    gone = pl.concat([_arithmetic(case, formulas), _ops_of_layers(case, layers)])
    change = without_dispatch(shorter, gone)
    return timed(case, RULE, owned, change, f"{case.of_step(ns)} {why}{_named(layers)}", evidence)


def _with_layers(chosen: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The kernels of layers with what one op leaves of them, or a compiler if that is less."""
    ends = layers.select("event", of_layer="least", at_worst="most")
    return chosen.join(ends, on="event", how="left", maintain_order="left").with_columns(
        least=pl.min_horizontal("least", "of_layer"), most=pl.coalesce("at_worst", "most")
    )


def _named(layers: pl.DataFrame) -> str:
    """Which layers are written out, the one that takes most of the time first."""
    names = (
        layers.group_by("layer")
        .agg(pl.col("time_ns").sum())
        .sort("time_ns", "layer", descending=True)["layer"]
    )
    if names.is_empty():
        return ""
    return f" Written out op by op: {', '.join(names)}."


def _ops_of_layers(case: Case, layers: pl.DataFrame) -> pl.Series:
    """The ops that need no dispatch when one op replaces each layer: all but the first of each pass."""
    tops = layers.group_by("formula", "backward", "top").agg(pl.col("event").min()).sort("event")
    later = tops.filter(pl.int_range(pl.len()).over("formula", "backward") > 0)["top"]
    return at_or_below(case.trace.events, later.unique())


def _are_alone(
    kernels: pl.DataFrame, chains: pl.DataFrame, formulas: pl.DataFrame, layers: pl.DataFrame
) -> bool:
    """Whether formulas take nearly all of the time that a compiler could shorten."""
    whole = kernels.filter(pl.col("chain").is_in(chains["chain"].implode()))
    in_formulas = pl.col("chain").is_in(formulas["chain"].implode()) & ~pl.col("op").str.contains(_LAYER)
    mine = whole.filter(in_formulas | pl.col("event").is_in(layers["event"].implode()))
    return int(mine["time_ns"].sum()) >= FORMULAS_ALONE * int(whole["time_ns"].sum())


def _beside_layers(case: Case, left: str) -> pl.Expr:
    """What is left of each kernel of a chain, by what is left of all: layers between the formulas stay as they are, and formulas take all that is left.

    A chain goes on through layers that are one op each, which no fused op in place of a formula makes faster.
    """
    if case.trace.info.framework != "pytorch":
        return pl.col(left)
    layer = pl.col("class").is_in(["elementwise", "reduction"]) & pl.col("op").str.contains(_LAYER)
    ns, whole = pl.col("time_ns"), pl.col("time_ns").sum().over("chain")
    rest = (ns * ~layer).sum().over("chain").clip(lower_bound=1)
    return pl.when(layer).then(1.0).otherwise((pl.col(left) * whole / rest).clip(upper_bound=1.0))


def _arithmetic(case: Case, formulas: pl.DataFrame) -> pl.Series:
    """The ops of formulas that need no dispatch when one op replaces them: all but the first of each chain."""
    inside = case.compute.kernels.filter(
        pl.col("chain").is_in(formulas["chain"].implode()), pl.col("op").str.contains(_PRIMITIVE)
    )
    later = inside.filter(pl.int_range(pl.len()).over("chain") > 0)["event"]
    kernels = case.trace.kernels.filter(pl.col("event").is_in(later.implode()))
    return at_or_below(case.trace.events, kernels["op"].drop_nulls().unique())


def _advised(case: Case, chains: pl.DataFrame) -> Finding | None:
    """Layers as the framework has them, one op each: no mistake, and what a compiler makes of them is not promised."""
    mine = case.compute.kernels.filter(pl.col("chain").is_in(chains["chain"].implode()))["event"]
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(mine.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    why, evidence = _traffic(case, chains, owned)
    found = RULE.finding(
        detail=f"{case.of_step(ns)} {why}",
        fix=_COMPILE.get(case.trace.info.framework or "", RULE.fix[ANY]),
        title="A compiler could fuse layers",
        evidence={"names": case.top_names(owned), **evidence},
        share=round(min(1.0, ns / case.step_ns), 4),
    )
    found.class_ = "advice"  # every eager job has some
    case.claim(owned)
    return found


def _traffic(case: Case, chains: pl.DataFrame, owned: pl.DataFrame) -> tuple[str, dict[str, int]]:
    """What those kernels of the chains that the finding owns keep in memory, in words and as evidence: of each chain their part of its bytes."""
    inside = case.compute.kernels.join(chains, on="chain")
    part = pl.col("bytes").fill_null(0) / pl.col("bytes_total").clip(lower_bound=1)
    kept = part * (pl.col("bytes_total") - pl.col("bytes_in_out"))
    mine = inside.with_columns(kept=kept).filter(pl.col("event").is_in(owned["named_by"].unique().implode()))
    saved, count = int(mine["kept"].sum() / case.step_count), int(len(mine) / case.step_count)
    why = (
        f"is spent in {count:,} elementwise, reduction and copy kernels that follow one another. Fused, "
        f"{size(saved)} of intermediate tensors a step would stay on chip."
    )
    return why, {"kernels_per_step": count, "intermediate_bytes_per_step": saved}


def _saves(case: Case, chains: pl.DataFrame) -> float:
    """What fusing them saves, as a share of the step, halfway between best and worst."""
    left = (chains["least"] + chains["most"]) / 2
    return float((chains["time_ns"] * (1 - left)).sum()) / max(1, len(case.lengths)) / case.step_ns


def _fused(case: Case, bandwidth: float) -> pl.DataFrame:
    """The chains with what fusion leaves of their time: the bytes that enter and leave them, at the rate of a fused kernel.

    At best each tensor is read once; at worst whatever may be another tensor is, or the fused kernel is slow. What stays on chip
    must still be computed, which decides where a small input is broadcast to a large tensor.
    """
    rate = FUSED_CHAIN_BANDWIDTH * bandwidth / 1e9
    single = case.peaks.flops_per_s("fp32") if case.peaks else None
    computed = pl.col("flops").fill_null(0) / (single or float("inf")) * FLOPS_OF_PEAK_INSTRUCTION * bandwidth
    least, most = (pl.max_horizontal(name, computed) for name in ("bytes_least", "bytes_in_out"))
    best = FUSED_CHAIN_BEST * least
    worst = pl.max_horizontal(FUSED_CHAIN_WORST * least, FUSED_CHAIN_BEST * most)
    flops = case.compute.kernels.group_by("chain").agg(pl.col("flops").sum())
    mine = case.compute.chains.filter(pl.col("device").eq_missing(case.device), pl.col("bytes_in_out") > 0)
    mine = mine.join(flops, on="chain", how="left", maintain_order="left")
    ns = pl.col("time_ns").clip(lower_bound=1)
    return mine.select(
        "chain",
        "kernels",
        "time_ns",
        "bytes_total",
        "bytes_in_out",
        least=(best / rate / ns).clip(upper_bound=1.0),
        most=(worst / rate / ns).clip(upper_bound=1.0),
    )


_COMPILE = {
    "pytorch": "torch.compile(model) would fuse these layers; how much that brings depends on the model.",
    "tensorflow": "tf.function(jit_compile=True) would fuse these layers; how much that brings depends on the model.",
}
RULE: Rule[Case] = Rule(
    code="unfused-elementwise",
    title="Elementwise kernels pass tensors through memory one by one",
    turn=204,
    page="kernels",
    certainty=SURE_FUSION,
    owns="runs of elementwise, reduction and copy kernels between matrix products",
    change="each run takes 1.2 to 2.2 times what reading its inputs and writing its outputs takes at 60 % of memory bandwidth, or what its arithmetic takes element by element at 60 % of the fp32 rate (half of its peak), if that is longer; at worst, layers between formulas remain, and also at best where formulas take 85 % of the runs' time; layers that are one op each get advice without a promise; kernels of other findings stay. Of norms, GELU, SiLU, mish and softmax that are written out in PyTorch's arithmetic, and of rotary embeddings beside these, 1.2 to 2.4 times the shortest of their kernels that touches all elements remains of the forward pass, and 1.5 to 2.3 times (of norms 5.9) of the backward pass",
    fix={
        "pytorch": "Let a compiler fuse them: torch.compile(model), or the fused version of the layer (torch.nn.functional.gelu, layer_norm, rms_norm, cross_entropy) instead of its formula.",
        "tensorflow": "Compile the step: tf.function(jit_compile=True).",
        ANY: "Let a compiler fuse them into one kernel.",
    },
    find=find,
    needs_device=True,
)
