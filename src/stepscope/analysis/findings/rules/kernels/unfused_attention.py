"""Attention as separate kernels that write the whole table of scores to memory."""

from __future__ import annotations

import json
import math

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import (
    FUSED_ATTENTION_BEST,
    FUSED_ATTENTION_FACTOR,
    FUSED_ATTENTION_WORST,
    FUSED_FP32_ATTENTION_BEST,
    FUSED_FP32_ATTENTION_WORST,
)
from stepscope.registers.policy.findings import (
    MAJORITY,
    SCORES_LENGTH,
)
from stepscope.trace.lookup import are_named, distinct
from stepscope.trace.schema import Text

_PRODUCT = r"(?i)bmm|matmul|^(aten::)?mm$|dot_general|einsum|gemm"
_SOFTMAX = r"(?i)softmax"
_BATCHED = 3  # sides of a batch of matrices


def find(case: Case) -> Finding | None:
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
    least, most = (min(1.0, ns / total) for ns in _fused_ns(case, products))
    chosen = work.select("event", least=pl.lit(least), most=pl.lit(most))
    return of_kernels(
        case,
        RULE,
        chosen,
        "is spent in attention as separate products, masks and softmax.",
    )


def _fused_ns(case: Case, products: pl.DataFrame) -> tuple[float, float]:
    """How long fused attention takes for the same products, at best and at worst."""
    plain = _is_plain_fp32(case, products)
    formats = ("fp32",) if plain else ("bf16", "fp16")
    peak = next(filter(None, map(case.peaks.flops_per_s, formats)), None) if case.peaks else None
    # An op's work is known once for each of its kernels.
    flops = float(products["flops"].sum())
    if not peak:
        known = int(products["dur_ns"].sum())
        return FUSED_ATTENTION_FACTOR * known, known
    best, worst = (
        (FUSED_FP32_ATTENTION_BEST, FUSED_FP32_ATTENTION_WORST)
        if plain
        else (FUSED_ATTENTION_BEST, FUSED_ATTENTION_WORST)
    )
    return flops / (best * peak) * 1e9, flops / (worst * peak) * 1e9


def _is_plain_fp32(case: Case, products: pl.DataFrame) -> bool:
    """Whether most of the products run in fp32 without tensor cores: fused, they still do."""
    rows = case.kernels.filter(pl.col("event").is_in(products["event"].implode()))
    plain = rows.filter(pl.col("precision") == "fp32", ~pl.col("tensor_cores").fill_null(False))
    return int(plain["dur_ns"].sum()) > MAJORITY * int(rows["dur_ns"].sum())


def _score_ops(case: Case) -> pl.DataFrame:
    """Ops that read or write the scores of attention: event, flops (of products only).

    Scores are what softmax is taken of: a batch of square-like tables. A compiled program has no softmax by name; there
    they are large square tables which products make and something else then reduces.
    """
    ops = case.ops.filter(pl.col("shapes").is_not_null()).select(
        "event", "flops", "device_total_ns", pl.col("name", "shapes").cast(Text)
    )
    sizes = _score_sizes(ops)
    if not sizes:
        return ops.select("event", "flops").clear()
    touching = are_named(
        ops["shapes"], lambda texts: texts.map_elements(lambda text: _touch(text, sizes), pl.Boolean)
    )
    product = pl.col("name").cast(pl.String).str.contains(_PRODUCT)
    found = ops.filter(touching, pl.col("device_total_ns") > 0)
    # The outer op of a product (matmul around bmm) would count its work twice: kernels belong to the inner one.
    return found.select("event", flops=pl.when(product).then("flops"))


def _score_sizes(ops: pl.DataFrame) -> set[int]:
    """How many elements the tables of scores have."""
    softmax = _shapes_of(ops, _SOFTMAX)
    if len(softmax):
        shapes = [shape for text in softmax for shape in _shapes(text)[:1]]
        return {_elements(shape) for shape in shapes if len(shape) >= _BATCHED and shape[-2] >= SCORES_LENGTH}
    reduced = _shapes_of(ops, r"^(reduce_(max|sum)|exp|div)$")
    multiplied = _shapes_of(ops, _PRODUCT)
    tables = {_elements(shape) for text in reduced for shape in _shapes(text) if _is_square(shape)}
    used = {_elements(shape) for text in multiplied for shape in _shapes(text) if _is_square(shape)}
    return tables & used


def _shapes_of(ops: pl.DataFrame, pattern: str) -> list[str]:
    """The different shapes of the ops whose name matches."""
    named = are_named(ops["name"], lambda names: names.str.contains(pattern))
    return list(distinct(ops["shapes"].filter(named)).cast(pl.String))


def _touch(text: str, sizes: set[int]) -> bool:
    """Whether an op of these shapes reads or writes a table of one of the sizes."""
    shapes = _shapes(text)
    return bool(sizes & {*map(_elements, shapes), *_made_sizes(shapes)})


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


RULE: Rule[Case] = Rule(
    code="unfused-attention",
    title="Attention runs as separate kernels",
    turn=180,
    page="kernels",
    owns="kernels that read or write the table of attention scores",
    change="its products at 28 to 45 % of the 16-bit peak (30 to 65 % of that of fp32, where they stay in fp32), nothing else",
    fix={
        "pytorch": "Use torch.nn.functional.scaled_dot_product_attention, which runs as one kernel.",
        "jax": "Use jax.nn.dot_product_attention(implementation='cudnn').",
        ANY: "Use a fused attention kernel.",
    },
    find=find,
)
