"""Attention as separate kernels that write the whole table of scores to memory."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.score_shapes import BATCHED, count_elements, is_square, made_sizes, shapes_of_text
from stepscope.registers.calibration.host_ops import (
    HOST_ATTENTION_BEST,
    HOST_ATTENTION_WORST,
    HOST_LONG_ATTENTION_BEST,
    HOST_LONG_ATTENTION_WORST,
)
from stepscope.registers.calibration.kernels import (
    CAUSAL_WORK,
    FUSED_ATTENTION_BEST,
    FUSED_ATTENTION_FACTOR,
    FUSED_ATTENTION_WORST,
    FUSED_FP32_ATTENTION_BEST,
    FUSED_FP32_ATTENTION_WORST,
    FUSED_TF32_ATTENTION_BEST,
    FUSED_TF32_ATTENTION_WORST,
)
from stepscope.registers.policy.compute import FEWEST_PIECES
from stepscope.registers.policy.device_findings import SCORES_LENGTH
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING
from stepscope.registers.policy.host_code import HOST_SCORES_LENGTH, HOST_SCORES_LONG
from stepscope.trace.lookup import are_named, distinct, events_named
from stepscope.trace.schema import Text
from stepscope.trace.scopes import ancestors

_WHY = "is spent in attention as separate products, masks and softmax."
_PRODUCT = r"(?i)bmm|matmul|^(aten::)?mm$|dot_general|einsum|gemm"
_SOFTMAX = r"(?i)softmax"
_MASKS = r"^aten::(masked_fill_?|where|add_?)$"
_OF_LIBRARY = r"::"  # as the names of ops that are no instructions of a program
_NODE = r"^autograd::engine::evaluate_function: "
_WIDTHS = (1, 2, 4)  # bytes of an element: of a mask, and of scores


def find(case: Case) -> Finding | None:
    """Attention as separate kernels that write the whole table of scores to memory."""
    scores = _score_ops(case)
    if scores.is_empty():
        return None
    if case.device is None:
        return _on_host(case, scores)
    found = _work(case, scores)
    work = found.with_columns(dur_ns=case.trace.events["dur_ns"].gather(found["event"]))
    total = int(work["dur_ns"].sum())
    products = work.filter(pl.col("flops").is_not_null())
    if not total or products.is_empty() or _is_double(case, products):
        return None
    least, most = (min(1.0, ns / total) for ns in _fused_ns(case, products))
    owned = case.free(
        pl.col("part").is_in(["compute", "copy"]), pl.col("named_by").is_in(work["event"].implode())
    )
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    chosen = work.select("event", least=pl.lit(least), most=pl.lit(most))
    detail = f"{case.of_step(ns)} {_WHY}"
    return timed(case, RULE, owned, _dispatched_once(case, scores, shorten_kernels(case, chosen)), detail)


def _on_host(case: Case, scores: pl.DataFrame) -> Finding | None:
    """PyTorch has an attention for CPUs that keeps a block of the scores in the cache."""
    if case.trace.info.framework != "pytorch":
        return None
    mine = case.ops.filter(pl.col("event").is_in(scores["event"].implode()))
    double = mine["dtypes"].cast(pl.String).str.starts_with('["double"').fill_null(False)
    softmax = mine.select(pl.col("name", "shapes").cast(Text))
    lengths = [shape[-1] for text in _shapes_of(softmax, _SOFTMAX) for shape in shapes_of_text(text)[:1]]
    length = max(lengths, default=0)
    if length < HOST_SCORES_LENGTH or int(double.sum()) > MAJORITY * len(mine):
        return None
    least, most = (HOST_ATTENTION_BEST, HOST_ATTENTION_WORST)
    if length >= HOST_SCORES_LONG:
        least, most = (HOST_LONG_ATTENTION_BEST, HOST_LONG_ATTENTION_WORST)
    chosen = scores.select("event", least=pl.lit(least, pl.Float64), most=pl.lit(most, pl.Float64))
    return of_host_ops(case, RULE, chosen, _WHY)


def _dispatched_once(case: Case, scores: pl.DataFrame, change: Change) -> Change:
    """The host dispatches nothing between the products, in the backward pass neither; at most, one call does for two of them.

    At worst the call of the fused kernel costs the host what the products do.
    """
    events = case.trace.events
    products, others = (scores.filter(each)["event"] for each in (pl.col("product"), ~pl.col("product")))
    nodes = events_named(events, lambda names: names.str.contains(_NODE))
    around = ancestors(events, nodes)
    of_products, of_others = (around.gather(each).drop_nulls().unique() for each in (products, others))
    kept = of_products.implode()
    gone = at_or_below(events, pl.concat([others, of_others.filter(~of_others.is_in(kept))]))
    paired = at_or_below(events, pl.concat([products, of_products]))
    less = without_dispatch(change, gone)
    mine = pl.col("event").is_in(paired.implode()) & (pl.col("cause") == "dispatch")
    return Change(less.smallest, less.largest.with_host(mine, 1 / FEWEST_PIECES))


def _is_double(case: Case, products: pl.DataFrame) -> bool:
    """No library fuses attention in float64: that is a finding of its own, and comes first."""
    rows = case.kernels.filter(pl.col("event").is_in(products["event"].implode()))
    double = rows.filter(pl.col("precision") == "fp64")
    return int(double["dur_ns"].sum()) > MAJORITY * int(rows["dur_ns"].sum())


def _work(case: Case, scores: pl.DataFrame) -> pl.DataFrame:
    """event, flops (of products only) of all device work in the steps that goes: kernels and copies of these ops.

    A product copies its operands where their layout does not suit it; fused attention reads them as they are.
    """
    events = case.trace.events
    here = case.trace.kernels.select("event", "op").filter(
        pl.col("event").is_in(case.kernels["event"].implode())
    )
    launched = pl.concat([here, _device_copies(case)])
    of_scores = scores.select(op="event", flops="flops")
    own = launched.join(of_scores, on="op", maintain_order="left").select("event", "flops")
    inside = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(
        scores.filter("product")["event"], True
    )
    helps = launched.filter(ancestors(events, inside).gather(launched["op"]).is_not_null())
    none = pl.lit(None, dtype=scores.schema["flops"])
    direct = case.kernels.select("event").join(
        scores.select("event", "flops"), on="event", maintain_order="left"
    )
    both = pl.concat([own, direct, helps.select("event", flops=none)])
    return both.unique("event", keep="first", maintain_order=True)


def _device_copies(case: Case) -> pl.DataFrame:
    """event, op of copies from device to device: a clone of the scores is one."""
    copies = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "DtoD")["event"]
    mine = copies.filter(copies.is_in(case.plan.items["event"].implode()))
    links = case.trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(mine.implode()))
    events = case.trace.events
    op = ancestors(events, events["kind"] == "op").gather(links["from"])
    return links.select(event="to").with_columns(op.alias("op"))


def _fused_ns(case: Case, products: pl.DataFrame) -> tuple[float, float]:
    """How long fused attention takes for the same products, at best and at worst."""
    best, worst, formats = _rates(case, products)
    peak = next(filter(None, map(case.peaks.flops_per_s, formats)), None) if case.peaks else None
    # An op's work is known once for each of its kernels.
    flops = float(products["flops"].sum())
    if not peak:
        known = int(products["dur_ns"].sum())
        return FUSED_ATTENTION_FACTOR * known, known
    return flops / (best * peak) * 1e9, flops / (worst * peak) * 1e9


def _rates(case: Case, products: pl.DataFrame) -> tuple[float, float, tuple[str, ...]]:
    """What a fused kernel reaches of the peak in the format that most of the products run in: it stays the same."""
    rows = case.kernels.filter(pl.col("event").is_in(products["event"].implode()))
    plain = (pl.col("precision") == "fp32") & ~pl.col("tensor_cores").fill_null(False)
    most = MAJORITY * int(rows["dur_ns"].sum())
    if int(rows.filter(plain)["dur_ns"].sum()) > most:
        return FUSED_FP32_ATTENTION_BEST, FUSED_FP32_ATTENTION_WORST, ("fp32",)
    if int(rows.filter(pl.col("precision") == "tf32")["dur_ns"].sum()) > most:
        return FUSED_TF32_ATTENTION_BEST, FUSED_TF32_ATTENTION_WORST, ("tf32",)
    return FUSED_ATTENTION_BEST, FUSED_ATTENTION_WORST, ("bf16", "fp16")


def _score_ops(case: Case) -> pl.DataFrame:
    """Ops that read or write the scores of attention: event, product, flops (of products only, and only what a mask leaves).

    Scores are what softmax is taken of: a batch of square-like tables. A compiled program has no softmax by name; there
    they are large square tables which one product makes, something else reads and another product takes.
    """
    ops = case.ops.filter(pl.col("shapes").is_not_null()).select(
        "event", "flops", "device_total_ns", pl.col("name", "shapes").cast(Text)
    )
    product = pl.col("name").cast(pl.String).str.contains(_PRODUCT)
    sizes = _score_sizes(ops)
    if not sizes:
        return ops.select("event", "flops", product=pl.lit(False)).clear()
    texts = distinct(ops["shapes"])
    tables = sizes | _stacks(texts, sizes)
    touching = _touching(texts, tables)
    halved = pl.col("shapes").is_in(_touching(touching, _causal_sizes(ops, sizes)).implode())
    left = pl.when(halved).then(pl.col("flops") * CAUSAL_WORK).otherwise("flops")
    # A view of the scores takes the host's time only; it goes with them.
    works = (pl.col("device_total_ns") > 0) | ~product | pl.lit(case.device is None)
    found = ops.filter(pl.col("shapes").is_in(touching.implode()), works)
    # The outer op of a product (matmul around bmm) would count its work twice: kernels belong to the inner one.
    known = found.select("event", product=product, flops=pl.when(product).then(left))
    none = pl.lit(None, dtype=known.schema["flops"])
    return pl.concat([known, _filling(case, tables).select("event", product=pl.lit(False), flops=none)])


def _stacks(texts: Iterable[str], sizes: set[int]) -> set[int]:
    """How many elements the scores of several layers have that a loop over layers keeps for its backward pass."""
    shapes = (shape for text in texts for shape in shapes_of_text(text))
    return {
        count_elements(shape) for shape in shapes if is_square(shape) and count_elements(shape[1:]) in sizes
    }


def _filling(case: Case, tables: set[int]) -> pl.DataFrame:
    """Instructions that read nothing and write a table of one of these sizes: a mask, or zeros to add to."""
    written = [size * width for size in tables for width in _WIDTHS]
    return case.ops.filter(
        pl.col("shapes").is_null(), pl.col("bytes").is_in(written), pl.col("device_total_ns") > 0
    )


def _touching(texts: pl.Series, sizes: set[int]) -> pl.Series:
    """The shapes of ops that read or make a tensor of one of these sizes."""
    touched = [
        bool(sizes & {*map(count_elements, shapes_of_text(text)), *made_sizes(shapes_of_text(text))})
        for text in texts
    ]
    found: pl.Series = texts.filter(pl.Series(touched, dtype=pl.Boolean))
    return found


def _causal_sizes(ops: pl.DataFrame, sizes: set[int]) -> set[int]:
    """The scores under a mask that all heads and samples share, a square: it leaves what is below the diagonal."""
    name = pl.col("name").cast(pl.String)
    fused = ~name.str.contains(_OF_LIBRARY) & ~name.str.contains(
        _PRODUCT
    )  # may mask as well, whatever its name
    masking = ops.filter(name.str.contains(_MASKS) | fused)["shapes"].unique()
    return {
        count_elements(table)
        for shapes in map(shapes_of_text, masking)
        for table in shapes
        if count_elements(table) in sizes and is_square(table)
        for mask in shapes
        if count_elements(table) > count_elements(mask) == table[-1] ** 2 and mask[-2:] == table[-2:]
    }


def _score_sizes(ops: pl.DataFrame) -> set[int]:
    """How many elements the tables of scores have."""
    softmax = _shapes_of(ops, _SOFTMAX)
    if softmax:
        shapes = [shape for text in softmax for shape in shapes_of_text(text)[:1]]
        long = {
            count_elements(shape) for shape in shapes if len(shape) >= BATCHED and shape[-2] >= SCORES_LENGTH
        }
        # The softmax of a loss, or of an output, is taken of what weights make: not of a product for each head.
        return long & _made(ops)
    reduced = _squares(_shapes_of(ops, r"^(reduce_(max|sum)|exp|div)$"))
    product = are_named(ops["name"], lambda names: names.str.contains(_PRODUCT))
    read = _squares(distinct(ops["shapes"].filter(~product)))
    return (reduced | read & _made(ops)) & _squares(_shapes_of(ops, _PRODUCT))


def _made(ops: pl.DataFrame) -> set[int]:
    """How many elements the products of two batches of matrices have."""
    texts = _shapes_of(ops, _PRODUCT)
    # A product that adds (baddbmm) has what it adds before its operands.
    return {
        size for text in texts for size in made_sizes([shape for shape in shapes_of_text(text) if shape][-2:])
    }


def _squares(texts: Iterable[str]) -> set[int]:
    """How many elements the batches of square tables have that ops of these shapes read."""
    return {count_elements(shape) for text in texts for shape in shapes_of_text(text) if is_square(shape)}


def _shapes_of(ops: pl.DataFrame, pattern: str) -> list[str]:
    """The different shapes of the ops whose name matches."""
    named = are_named(ops["name"], lambda names: names.str.contains(pattern))
    return list(distinct(ops["shapes"].filter(named)).cast(pl.String))


RULE: Rule[Case] = Rule(
    code="unfused-attention",
    title="Attention runs as separate kernels",
    title_without_device="Attention runs as separate ops",
    turn=180,
    turn_without_device=102,
    page="kernels",
    owns="kernels that read or write the matrix of attention scores, or a stack of those of several layers; without a device, ops of PyTorch that do, from length 256",
    change="only its products remain, at 28 to 45 % of the 16-bit peak (30 to 65 % of the fp32 peak, 15 to 35 % of the TF32 peak, if they stay in these); the host dispatches nothing between them, and at best one call for two products; half of the products if all heads share a square mask. Without a device, 45 to 90 % of the time of the ops remains, from length 1024 18 to 45 %",
    fix={
        "pytorch": "Use torch.nn.functional.scaled_dot_product_attention, which runs as one kernel; is_causal=True instead of a mask below the diagonal.",
        "jax": "Use jax.nn.dot_product_attention(implementation='cudnn').",
        ANY: "Use a fused attention kernel.",
    },
    find=find,
)
