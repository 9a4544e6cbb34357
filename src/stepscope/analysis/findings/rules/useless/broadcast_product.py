"""All pairs of two sets of vectors by a broadcast and a sum, where a matrix product computes the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.formulas.constants import PRECISION_BYTES
from stepscope.analysis.host.views import ONLY_VIEWS
from stepscope.analysis.ops.broadcasts import BEGINNING, Pairs, may_begin, pairs_of
from stepscope.analysis.shapes import recorded_strides, shapes_in
from stepscope.analysis.xla.broadcasts import AllPairs, broadcast_sums
from stepscope.analysis.xla.hlo_module import as_kernel, read_module
from stepscope.analysis.xla.ops import events_of_programs, programs_that_ran
from stepscope.registers.calibration.host_ops import HOST_PAIRS_BEST, HOST_PAIRS_WORST
from stepscope.registers.calibration.kernels import (
    FLOPS_OF_PEAK_INSTRUCTION,
)
from stepscope.registers.calibration.products import (
    PRODUCT_TRAFFIC_BEST,
    PRODUCT_TRAFFIC_WORST,
    SHORTEST_PRODUCT_NS,
)
from stepscope.registers.policy.repeated_work import OUTSIDE_EFFICIENCY_LEAST, OUTSIDE_EFFICIENCY_MOST
from stepscope.registers.policy.useless_work import (
    BROADCAST_ELEMENTS_LEAST,
    BROADCAST_LEFT_MOST,
    PAIRS_PASSES_COMPILED,
    PAIRS_PASSES_LEAST,
    PAIRS_PASSES_MOST,
)
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors

# Ops that others call for the same work, as square calls pow.
_COMPOSED = tuple(
    f"aten::{name}" for name in ("pow", "sub", "mul", "sum", "mean", "div", "linalg_vector_norm")
)
_NODE = r"Backward\d*$"
_CALL = ("name", "shapes", "strides", "inputs")
_SIDES = ("one", "other")  # a gradient for each
_Row = tuple[int, int, int, int, int, int]
_WORK = {"elements": pl.Float64, "pairs": pl.Float64, "products": pl.Float64, "passes": pl.Float64}


def find(case: Case) -> Finding | None:
    """In compiled programs by their code, else by the ops and the shapes that they are given."""
    if case.device is None:
        return _in_ops(case)
    if not case.peaks:
        return None
    return (case.runs_programs and _in_programs(case)) or _in_ops(case)


def _in_programs(case: Case) -> Finding | None:
    """Fused kernels that add up over a broadcast, by the code of their program."""
    known = _of_codes(case)
    if not known:
        return None
    rows = [
        (module, key, one.elements, one.pairs, one.products, PAIRS_PASSES_COMPILED, one.precision)
        for (module, name), one in known.items()
        for key in sorted({name, as_kernel(name)})
    ]
    schema = {"module": pl.String, "key": pl.String, **_WORK, "precision": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row").unique(["module", "key"], keep="first")
    events = events_of_programs(case.trace).filter(pl.col("device") == case.device)
    found = pl.concat(
        events.join(table, left_on=["module", column], right_on=["module", "key"]).select(
            "event", *_WORK, "precision"
        )
        for column in ("name", "instruction")
    ).unique("event", maintain_order=True)
    kernels = case.compute.kernels.select("event", "time_ns")
    return _found(case, found.join(kernels, on="event").with_columns(group="event"))


def _of_codes(case: Case) -> dict[tuple[str, str], AllPairs]:
    """By program and instruction; of programs of one name, what all of them have."""
    codes = sorted({(name, hlo) for name, _, hlo in programs_that_ran(case.trace)})
    programs = Counter(name for name, _ in codes)
    found = [
        ((name, instruction), one)
        for name, hlo in codes
        for instruction, one in broadcast_sums(read_module(hlo)).items()
    ]
    agreed = Counter(key for key, _ in found)
    return {key: one for key, one in found if agreed[key] == programs[key[0]]}


def _in_ops(case: Case) -> Finding | None:
    """Ops of the forward pass that broadcast, square and add up, and those of the backward pass on arrays of that shape."""
    if case.trace.info.framework != "pytorch":
        return None
    calls = _calls(case)
    if calls is None:
        return None
    forward = calls.filter(~pl.col("backward"))
    found = pairs_of(forward.select("track", "op", *_CALL).iter_rows())
    rows = [
        (op, place, math.prod(one.shape), one.pairs, one.products, _passes(one))
        for place, one in enumerate(found)
        for op in one.ops
    ]
    rows += _gradients(calls.filter("backward"), found)
    table = pl.DataFrame(rows, schema={"op": pl.UInt32, "group": pl.UInt32, **_WORK}, orient="row")
    if case.device is None:
        return _on_host(case, table)
    kernels = case.compute.kernels.select("event", "time_ns", "precision")
    launched = case.trace.kernels.select("event", "op").drop_nulls("op").join(table, on="op")
    return _found(case, launched.join(kernels, on="event"))


def _passes(one: Pairs) -> int:
    return PAIRS_PASSES_MOST if one.squared else PAIRS_PASSES_LEAST


def _calls(case: Case) -> pl.DataFrame | None:
    """track, op, name, shapes, strides, inputs, backward of the ops that launch work themselves, in order; None where none broadcasts."""
    events = case.trace.events
    launching = _computing(case)
    ops = case.trace.ops.select(
        op="event", shapes=pl.col("shapes").cast(pl.String), inputs=pl.col("concrete_inputs").cast(pl.String)
    ).drop_nulls("shapes")
    ops = ops.filter(pl.col("op").is_in(launching.implode())).join(
        recorded_strides(case.trace), on="op", how="left"
    )
    ops = ops.with_columns(name=events["name"].gather(ops["op"]).cast(pl.String))
    beginning = ops.filter(pl.col("name").is_in(BEGINNING)).select("name", "shapes", "strides").unique()
    if not any(may_begin(*row) for row in beginning.iter_rows()):
        return None
    nodes = is_named(events, _NODE) & (events["kind"] == "op")
    return ops.with_columns(
        track=events["track"].gather(ops["op"]),
        start=events["start_ns"].gather(ops["op"]),
        backward=ancestors(events, nodes).gather(ops["op"]).is_not_null(),
    ).sort("track", "start")


def _computing(case: Case) -> pl.Series:
    """The ops that launch kernels, or on a host those that compute and do not leave it to another op."""
    if case.device is not None:
        mine = case.compute.kernels.select("event").join(case.trace.kernels.select("event", "op"), on="event")
        return mine["op"].drop_nulls().unique()
    ops = case.ops.filter(pl.col("step").is_not_null(), ~pl.col("name").cast(pl.String).is_in(ONLY_VIEWS))
    leaves = ops.filter(pl.col("name").cast(pl.String).is_in(_COMPOSED))["event"]
    composed = case.trace.events["parent"].gather(leaves)
    found: pl.Series = ops["event"].filter(~ops["event"].is_in(composed.drop_nulls().implode()))
    return found


def _on_host(case: Case, table: pl.DataFrame) -> Finding | None:
    """The same where the ops compute: matrix products are so fast beside a broadcast that hardly any of their time remains."""
    if table.is_empty():
        return None
    elements, pairs = table.sort("elements", descending=True).select("elements", "pairs").row(0)
    chosen = table.select(
        event="op",
        least=pl.lit(HOST_PAIRS_BEST, pl.Float64),
        most=pl.lit(HOST_PAIRS_WORST, pl.Float64),
    )
    evidence = {"broadcast_elements": int(elements), "pairs": int(pairs)}
    return of_host_ops(case, RULE, chosen, _why(elements, pairs), evidence)


def _why(elements: float, pairs: float) -> str:
    return (
        f"is spent on all pairs of two sets of vectors: these are broadcast to {elements:,.0f} numbers, which are added"
        f" up to {pairs:,.0f}. A matrix product gives the same, and computes none of them one by one."
    )


def _gradients(backward: pl.DataFrame, found: list[Pairs]) -> Iterator[_Row]:
    """Rows of ops on arrays of the shape of a broadcast: two products give the gradients of its sides, for all broadcasts of this shape."""
    by_shape = {one.shape: (place, one) for place, one in enumerate(found)}
    counts = Counter(one.shape for one in found)
    for op, text in backward.select("op", "shapes").iter_rows():
        shape = next((each for each in shapes_in(text) if each in by_shape), None)
        if shape is not None:
            place, one = by_shape[shape]
            count = counts[shape]
            elements, products = count * math.prod(shape), len(_SIDES) * one.products
            yield op, len(found) + place, elements, count * one.pairs, products, _passes(one)


def _found(case: Case, work: pl.DataFrame) -> Finding | None:
    """Of kernels with what they compute, those of one broadcast in a group."""
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks else 1.0
    peaks = {name: (case.peaks and case.peaks.own_flops_per_s(name)) for name in PRECISION_BYTES}
    per_ns = {name: peak / 1e9 for name, peak in peaks.items() if peak}
    named = pl.col("precision").cast(pl.String)
    work = work.with_columns(
        item=named.replace_strict(PRECISION_BYTES, default=None, return_dtype=pl.Float64).max().over("group"),
        peak=named.replace_strict(per_ns, default=None, return_dtype=pl.Float64).min().over("group"),
        whole=pl.col("time_ns").sum().over("group"),
    ).drop_nulls(["item", "peak"])
    flops = FLOPS_OF_PEAK_INSTRUCTION * pl.col("elements") * pl.col("products") / pl.col("peak")
    traffic = pl.col("pairs") * pl.col("item") / rate
    best = flops / OUTSIDE_EFFICIENCY_MOST + PAIRS_PASSES_LEAST * traffic / PRODUCT_TRAFFIC_BEST
    worst = flops / OUTSIDE_EFFICIENCY_LEAST + pl.col("passes") * traffic / PRODUCT_TRAFFIC_WORST
    whole = pl.col("whole").clip(lower_bound=1)
    left = work.with_columns(
        least=(best.clip(SHORTEST_PRODUCT_NS) / whole).clip(upper_bound=1.0),
        most=(worst.clip(SHORTEST_PRODUCT_NS) / whole).clip(upper_bound=1.0),
    ).filter((pl.col("least") * pl.col("most")).sqrt() <= BROADCAST_LEFT_MOST)
    whole_work = float(left.unique("group")["elements"].sum())
    if whole_work < BROADCAST_ELEMENTS_LEAST * max(1, len(case.lengths)):
        return None
    elements, pairs = left.sort("elements", descending=True).select("elements", "pairs").row(0)
    evidence = {"broadcast_elements": int(elements), "pairs": int(pairs)}
    chosen = left.select("event", "least", "most")
    return of_kernels(case, RULE, chosen, _why(elements, pairs), evidence=evidence)


RULE: Rule[Case] = Rule(
    code="broadcast-product",
    title="A broadcast computes what a matrix product would",
    turn=185,
    turn_without_device=101,
    page="ops",
    owns="kernels that compute squared distances, inner products or weighted sums of all pairs of two sets of vectors by a broadcast ([N, 1, D] against [1, K, D]) and a sum over an axis that both have, from 100 million elements a step (without a device, of any size): in PyTorch a difference and its square, or a product, the sum, and ops of the backward pass on tensors of that shape; in compiled programs fused kernels, according to their code",
    change="matrix products at 30 to 70 % of the peak of their format (fp32 without TF32), and 2 to 7 passes over the result of each pair (in compiled programs 2 to 4) at 70 to 88 % of memory bandwidth; from half of the time on nothing is promised. Without a device, 1 to 10 % of the time of the ops remains",
    fix={
        "pytorch": "Use a matrix product, which makes only the N × K results: for squared distances expand the square, torch.addmm(b.square().sum(1), a, b.t(), alpha=-2) plus a.square().sum(1, keepdim=True) (not needed for an argmin over b), or torch.cdist; for products a @ b.t() or torch.einsum. Where distances are tiny against the vectors, subtract the mean of the vectors first, or clamp at zero before a root.",
        "jax": "Use a matrix product, which makes only the N × K results: for squared distances expand the square, jnp.sum(b * b, -1) - 2 * a @ b.T, plus jnp.sum(a * a, -1)[:, None] (not needed for an argmin over b), with precision='highest' if TF32 is too coarse; for products jnp.einsum or a @ b.T.",
        "tensorflow": "Use a matrix product, which makes only the N × K results: for squared distances expand the square, tf.reduce_sum(b * b, -1) - 2 * tf.matmul(a, b, transpose_b=True), plus tf.reduce_sum(a * a, -1, keepdims=True) (not needed for an argmin over b); for products tf.einsum or tf.matmul.",
        ANY: "Use a matrix product, which makes only the N × K results: for squared distances expand the square, |a|² - 2 a·b + |b|².",
    },
    find=find,
)
