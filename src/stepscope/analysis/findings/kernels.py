"""Findings about kernels: number format, memory layout, attention in pieces, too few blocks."""

from __future__ import annotations

import json
import math

import polars as pl

from stepscope.analysis.findings.finding import Case, Finding, timed
from stepscope.analysis.kernels.occupancy import multiprocessors
from stepscope.registers.calibration.kernels import (
    BETWEEN_TF32_AND_BF16,
    FUSED_ATTENTION_FACTOR,
    FUSED_ATTENTION_OF_PEAK,
    NORM_CHANNELS_LAST,
    PRODUCT_AT_BEST,
    TENSOR_CORES_OF_PEAK_RATIO,
    TF32_CAPABILITY,
    TF32_OF_PEAK,
    UNKNOWN_TENSOR_CORE_FACTOR,
)
from stepscope.registers.policy.findings import (
    LEAST_BLOCKS_FACTOR,
    LONG_KERNEL_NS,
    MAJORITY,
    SCORES_LENGTH,
    WORTH_A_FINDING,
    WORTH_SHOWING,
)

_TURNS_LAYOUT = r"(?i)nchwToNhwc|nhwcToNchw|nhwcAddPadding|transpose_readWrite"
_NORMALISES = r"batch_norm_(backward|collect_statistics|transform_input)"
_FILLS_BY_DESIGN = r"(?i)nccl|rccl|all_?reduce|persist|rnn|lstm|gru|cooperative"


def _by_kernels(
    case: Case, code: str, chosen: pl.DataFrame, title: str, why: str, least: float = WORTH_A_FINDING
) -> Finding | None:
    """A finding about kernels, `chosen` with event and the factor of its length after the change."""
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(chosen["event"].implode()))
    ns = case.per_step(owned)
    if ns < least * case.step_ns:
        return None
    items = case.plan.items.join(chosen, on="event", how="left", maintain_order="left")
    factor = items["factor"].fill_null(1.0)
    changed = case.plan.with_device(pl.lit(True), pl.lit(factor))
    left = owned.join(chosen, left_on="named_by", right_on="event", how="left", maintain_order="left")
    removable = int(float((left["ns"] * (1 - left["factor"])).sum()) / case.step_count)
    return timed(case, code, owned, changed, title, f"{case.of_step(ns)} {why}", owned_ns=max(0, removable))


def fp32_matmul(case: Case) -> Finding | None:
    """Matrix work in plain fp32 on a device that has tensor cores."""
    if not _has_tensor_cores(case):
        return None
    chosen = _on_tensor_cores(case, _plain_products(case))
    return _by_kernels(
        case,
        "fp32-matmul",
        chosen,
        "Matrix products run in fp32, without tensor cores",
        "is spent in fp32 matrix products and convolutions that tensor cores could do.",
    )


def _plain_products(case: Case) -> pl.DataFrame:
    """event, dur_ns, product, flops of all kernels of products and convolutions that are mostly done in plain fp32.

    A product is what one op launched: with tensor cores, the transforms and conversions around it go, too.
    """
    plain = (pl.col("precision") == "fp32") & ~pl.col("tensor_cores") & pl.col("eligible")
    rows = case.kernels.select(
        "event", "dur_ns", "step", name=pl.col("op").cast(pl.String), plain=plain.fill_null(False)
    )
    rows = rows.join(case.trace.kernels.select("event", "op"), on="event", how="left", maintain_order="left")
    # An instruction of a program; a command buffer holds many of them.
    one = pl.col("name").str.contains("conv") & ~pl.col("name").str.contains("command_buffer")
    by_name = pl.when(one).then(
        pl.concat_str([pl.col("name"), pl.col("step").cast(pl.String)], separator=" ")
    )
    alone = pl.format("kernel {}", "event")
    rows = rows.with_columns(product=pl.coalesce(pl.format("op {}", "op"), by_name, alone))
    share = (pl.col("dur_ns") * pl.col("plain")).sum() / pl.col("dur_ns").sum()
    rows = rows.filter(share.over("product") > MAJORITY)
    flops = case.ops.filter(pl.col("flops") > 0).select("event", "flops")
    of_op = rows.join(flops, left_on="op", right_on="event", how="left", maintain_order="left")["flops"]
    own = rows.join(flops, on="event", how="left", maintain_order="left")["flops"]
    # What a framework's op computes is told once for all its kernels, that of a program's instruction for each.
    return rows.with_columns(
        flops=pl.coalesce(pl.lit(of_op).max().over("product"), pl.lit(own).max().over("product"))
    )


def _on_tensor_cores(case: Case, kernels: pl.DataFrame) -> pl.DataFrame:
    """event, factor: what is left of each product, by the sums it must do where they are known, else by the peaks."""
    ratio = _tensor_core_factor(case)
    fast = _fast_peak(case)
    if not fast:
        return kernels.select("event", factor=pl.lit(ratio))
    ideal = pl.col("flops") / (TF32_OF_PEAK * fast) * 1e9 / pl.col("dur_ns").sum().over("product")
    factor = ideal.fill_null(ratio).clip(PRODUCT_AT_BEST * ratio, 1.0)
    return kernels.select("event", factor=factor * BETWEEN_TF32_AND_BF16)


def _fast_peak(case: Case) -> float | None:
    return (case.peaks.flops_per_s("tf32") or case.peaks.flops_per_s("fp16")) if case.peaks else None


def _tensor_core_factor(case: Case) -> float:
    """What is left of a product's time in TF32."""
    plain = case.peaks.flops_per_s("fp32") if case.peaks else None
    fast = _fast_peak(case)
    return (
        min(1.0, plain / fast / TENSOR_CORES_OF_PEAK_RATIO) if plain and fast else UNKNOWN_TENSOR_CORE_FACTOR
    )


def _has_tensor_cores(case: Case) -> bool:
    capabilities = [
        device.get("computeMajor") or device.get("compute_cap_major") or 0
        for device in case.trace.info.devices
    ]
    return any(isinstance(major, int) and major >= TF32_CAPABILITY for major in capabilities)


def layout_conversion(case: Case) -> Finding | None:
    """Kernels that only turn one memory layout into another."""
    names = case.kernels["name"].unique().drop_nulls()
    turning = names.filter(names.cast(pl.String).str.contains(_TURNS_LAYOUT))
    chosen = case.kernels.filter(pl.col("name").is_in(turning.implode())).select("event", factor=pl.lit(0.0))
    if len(chosen):
        # Normalisation in the other layout reads memory in a slower order.
        slower = names.filter(names.cast(pl.String).str.contains(_NORMALISES))
        slower = slower.filter(~slower.cast(pl.String).str.contains("channels_last"))
        others = case.kernels.filter(pl.col("name").is_in(slower.implode()))
        chosen = pl.concat([chosen, others.select("event", factor=pl.lit(NORM_CHANNELS_LAST))])
    return _by_kernels(
        case,
        "layout-conversion",
        chosen,
        "Kernels convert between memory layouts",
        "only converts tensors from one memory layout to another.",
        WORTH_SHOWING,
    )


def unfused_attention(case: Case) -> Finding | None:
    """Attention as separate kernels that write the whole table of scores to memory."""
    scores = _score_ops(case)
    if scores.is_empty():
        return None
    kernels = case.trace.kernels.select("event", "op").join(
        scores.select(op="event", flops="flops"), on="op", maintain_order="left"
    )
    direct = case.kernels.select("event").join(
        scores.select("event", "flops"), on="event", maintain_order="left"
    )
    found = pl.concat([kernels.select("event", "flops"), direct]).unique("event", maintain_order=True)
    work = case.kernels.select("event", "dur_ns").join(found, on="event", maintain_order="left")
    total = int(work["dur_ns"].sum())
    products = work.filter(pl.col("flops").is_not_null())
    if not total or products.is_empty():
        return None
    chosen = work.select("event", factor=pl.lit(min(1.0, _fused_ns(case, products) / total)))
    return _by_kernels(
        case,
        "unfused-attention",
        chosen,
        "Attention runs as separate kernels",
        "is spent in attention as separate products, masks and softmax.",
    )


def _fused_ns(case: Case, products: pl.DataFrame) -> float:
    """How long fused attention takes for the same products."""
    peak = case.peaks.flops_per_s("bf16") or case.peaks.flops_per_s("fp16") if case.peaks else None
    # An op's work is told once for each of its kernels.
    flops = float(products["flops"].sum())
    if not peak:
        return FUSED_ATTENTION_FACTOR * int(products["dur_ns"].sum())
    return flops / (FUSED_ATTENTION_OF_PEAK * peak) * 1e9


def _score_ops(case: Case) -> pl.DataFrame:
    """Ops that read or write the scores of attention: event, flops (of products only).

    Scores are what softmax is taken of: a batch of square-like tables. A compiled program has no softmax by name; there
    they are large square tables which products make and something else then reduces.
    """
    ops = case.ops.filter(pl.col("shapes").is_not_null()).select(
        "event", "name", "flops", "device_total_ns", shapes=pl.col("shapes").cast(pl.String)
    )
    sizes = _score_sizes(ops)
    if not sizes:
        return ops.select("event", "flops").clear()
    distinct = ops["shapes"].unique()
    touching = [
        text for text in distinct if sizes & {*map(_elements, _shapes(text)), *_made_sizes(_shapes(text))}
    ]
    product = pl.col("name").cast(pl.String).str.contains(_PRODUCT)
    found = ops.filter(pl.col("shapes").is_in(touching), pl.col("device_total_ns") > 0)
    # The outer op of a product (matmul around bmm) would count its work twice: kernels belong to the inner one.
    return found.select("event", flops=pl.when(product).then("flops"))


_PRODUCT = r"(?i)bmm|matmul|^(aten::)?mm$|dot_general|einsum|gemm"
_SOFTMAX = r"(?i)softmax"
_BATCHED = 3  # sides of a batch of matrices


def _score_sizes(ops: pl.DataFrame) -> set[int]:
    """How many elements the tables of scores have."""
    name = pl.col("name").cast(pl.String)
    softmax = ops.filter(name.str.contains(_SOFTMAX))["shapes"].unique()
    if len(softmax):
        shapes = [shape for text in softmax for shape in _shapes(text)[:1]]
        return {_elements(shape) for shape in shapes if len(shape) >= _BATCHED and shape[-2] >= SCORES_LENGTH}
    reduced = ops.filter(name.str.contains(r"^(reduce_(max|sum)|exp|div)$"))["shapes"].unique()
    multiplied = ops.filter(name.str.contains(_PRODUCT))["shapes"].unique()
    tables = {_elements(shape) for text in reduced for shape in _shapes(text) if _is_square(shape)}
    used = {_elements(shape) for text in multiplied for shape in _shapes(text) if _is_square(shape)}
    return tables & used


def _made_sizes(shapes: list[list[int]]) -> set[int]:
    """How many elements the product of two batches of matrices may have, whichever sides it sums over."""
    if len(shapes) != 2 or min(map(len, shapes)) < _BATCHED or shapes[0][:-2] != shapes[1][:-2]:
        return set()
    batch, (one, other) = math.prod(shapes[0][:-2]), (shape[-2:] for shape in shapes)
    return {
        batch * math.prod(one) * math.prod(other) // (side * side) for side in set(one) & set(other) if side
    }


def _is_square(shape: list[int]) -> bool:
    return len(shape) >= _BATCHED and shape[-1] == shape[-2] >= SCORES_LENGTH


def _shapes(text: str) -> list[list[int]]:
    """The shapes of an op's inputs that are tensors of numbers known."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    if not isinstance(found, list):
        return []
    return [
        shape
        for shape in found
        if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape)
    ]


def _elements(shape: list[int]) -> int:
    return math.prod(shape)


def low_occupancy(case: Case) -> Finding | None:
    """Long kernels with fewer blocks than the device has multiprocessors."""
    counts = [multiprocessors(device) for device in case.trace.info.devices]
    processors = next((count for count in counts if count), None)
    if not processors or case.kernels.is_empty():
        return None
    long = case.kernels.filter(pl.col("dur_ns") > LONG_KERNEL_NS)
    blocks = long.select("event", blocks=_blocks(long["grid"]), name=pl.col("name").cast(pl.String))
    few = blocks.filter(pl.col("blocks") <= processors / 2).filter(
        ~pl.col("name").str.contains(_FILLS_BY_DESIGN)
    )
    chosen = few.select("event", factor=(pl.col("blocks") / processors).clip(LEAST_BLOCKS_FACTOR, 1.0))
    return _by_kernels(
        case,
        "low-occupancy",
        chosen,
        "Long kernels use a fraction of the device",
        f"is spent in kernels with at most half as many blocks as the device has multiprocessors ({processors}).",
    )


def _blocks(grid: pl.Series) -> pl.Series:
    sides = [grid.arr.get(side).cast(pl.Int64) for side in range(3)]
    blocks: pl.Series = sides[0] * sides[1] * sides[2]
    return blocks
