"""Rows of a table that are looked up with a product: a one-hot matrix times the table."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.compute.classes import are_products
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.programs.host_programs import going_share, host_programs, of_instructions
from stepscope.analysis.findings.promise import of_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.one_hot_products import find_one_hot_products
from stepscope.analysis.ops.scattered_ones import Scattered, scattered_ones
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.one_hot import one_hot_work
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.calibration.kernels import LOOKUP_BEST, LOOKUP_WORST, PARAMETER_BYTES
from stepscope.registers.policy.findings import TOP_NAMES, WORTH_A_FINDING
from stepscope.registers.policy.useless_work import LOOKED_UP_LEAST, LOOKED_UP_MOST, ONE_HOT_CLASSES_LEAST
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors

_ONE_HOT = "aten::one_hot"
_SCOPE = "_one_hot"
# A hard sample that lets gradients through (gumbel_softmax) adds soft ones to the matrix, and is none.
_MAKES = r"^aten::(zero_|fill_|scatter_?|copy_|clone|to|_to_copy|contiguous|view|_unsafe_view|reshape|expand|squeeze|unsqueeze|detach)$"
_BACKWARD = r"transpose\(|Backward"


def _why(classes: int | None) -> str:
    many = "many" if classes is None else f"{classes:,}"
    return f"makes one-hot matrices of {many} classes and multiplies by them, which looks up rows of a table."


def find(case: Case) -> Finding | None:
    """In compiled programs by their code, else by the ops."""
    if case.device is None:
        if case.trace.info.framework == "pytorch":
            return _in_ops(case) or _of_scattered(case)
        return _on_host(case) or _in_graphs(case)
    return (case.runs_programs and _in_programs(case)) or _in_ops(case) or _of_scattered(case)


def _in_programs(case: Case) -> Finding | None:
    """Products that the code of a program gives a one-hot matrix, forward or backward, and the kernels that make it."""
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace) if b"compare" in hlo and b"iota" in hlo}
    works = [one_hot_work(read_module(hlo)) for hlo in codes]
    given = {text: sizes for one in works for text, sizes in one.products.items()}
    if not given:
        return None
    rows, is_product = _kernels(case), pl.col("product")
    products = rows.filter(is_product, pl.col("shapes").is_in(list(given)))
    making = rows.filter(~is_product, pl.col("shapes").is_in([text for one in works for text in one.making]))
    if products.is_empty():
        return None
    none = [pl.lit(0.0).alias(name) for name in ("least", "most")]
    chosen = pl.concat([_looked_up(case, products, given), making.select("event", *none)])
    return _found(
        case, chosen.unique("event", maintain_order=True), max(classes for _, classes in given.values())
    )


def _on_host(case: Case) -> Finding | None:
    """The same instructions of programs that the host itself runs."""
    works = {name: one_hot_work(module) for name, module in host_programs(case).items()}
    found = {name: work.names for name, work in works.items() if work.products}
    if not found:
        return None
    owned = of_instructions(case, found)
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    classes = max(each for work in works.values() for _, each in work.products.values())
    share = going_share(case, owned)
    left = Interval(
        1 - (1 - LOOKED_UP_LEAST) * share,
        1 - (1 - LOOKED_UP_MOST / 2) * share,
        1 - (1 - LOOKED_UP_MOST) * share,
    )
    detail = f"{case.of_step(ns)} {_why(classes)}"
    return timed(case, RULE, owned, case.plan, detail, {"classes": classes}, accounted=left)


def _in_graphs(case: Case) -> Finding | None:
    """The same in ops of TensorFlow's graphs, whose shapes are not known."""
    found = find_one_hot_products(case.trace, case.ops)
    if found is None:
        return None
    chosen = found.events.to_frame().with_columns(least=pl.lit(LOOKED_UP_LEAST), most=pl.lit(LOOKED_UP_MOST))
    evidence = {"ops": list(found.products[:TOP_NAMES])}
    return of_host_ops(case, RULE, chosen, _why(None), evidence, are_long=True)


def _looked_up(case: Case, products: pl.DataFrame, given: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """event, least, most: what a lookup takes of each product, by the bytes that it moves, where the device's memory is known."""
    shares = (LOOKED_UP_LEAST, LOOKED_UP_MOST)
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks else 0.0  # per ns
    left = []
    for text, flops, ns in products.select("shapes", "flops", "time_ns").iter_rows():
        count, classes = given[text]
        width = (flops or 0) / (2 * count * classes)
        # Forward, rows are read and written; backward, they are added to those of a table that was cleared.
        least, most = (
            times * PARAMETER_BYTES * width * moved / rate / ns if rate and ns else 0.0
            for times, moved in ((LOOKUP_BEST, 2 * count), (LOOKUP_WORST, count + 2 * count + classes))
        )
        left.append((min(1.0, least), min(1.0, most)) if least else shares)
    return products.select(
        "event",
        *(
            pl.Series(name, column, pl.Float64)
            for name, column in zip(("least", "most"), zip(*left, strict=True), strict=True)
        ),
    )


def _found(case: Case, chosen: pl.DataFrame, classes: int) -> Finding | None:
    why = _why(classes)
    if case.device is None:
        return of_host_ops(case, RULE, chosen, why, {"classes": classes})
    return of_kernels(case, RULE, chosen, why, evidence={"classes": classes})


def _in_ops(case: Case) -> Finding | None:
    """Products of the forward pass whose input has the shape of a one-hot matrix, their gradients, and what makes it."""
    made = _one_hot(case)
    if made.is_empty():
        return None
    sides = {each for text in made["shapes"].unique() for each in _matrices(text)[:1]}
    sides = {(rows, classes) for rows, classes in sides if classes >= ONE_HOT_CLASSES_LEAST}
    rows = _kernels(case)
    inputs = {text: _matrices(text) for text in rows["shapes"].unique().drop_nulls()}
    given = [text for text, found in inputs.items() if found and found[0] in sides]
    forward = rows.filter(pl.col("shapes").is_in(given), pl.col("product"), ~pl.col("backward"))
    if forward.is_empty():
        return None
    used = {inputs[text][0] for text in forward["shapes"].unique()}
    turned = {(classes, count) for count, classes in used}
    # The gradient of a layer's weight has the one-hot matrix on its right.
    of_gradient = [
        text
        for text, found in inputs.items()
        if found and (found[0] in turned or (len(found) > 1 and found[1] in used))
    ]
    is_gradient = pl.col("product") & pl.col("backward") & pl.col("shapes").is_in(of_gradient)
    making = ~pl.col("product") & ~pl.col("backward") & pl.col("shapes").is_in(given)
    events = pl.concat(
        [forward["event"], rows.filter(is_gradient | making)["event"], _launched(case, made["event"])]
    ).unique()
    chosen = pl.DataFrame({"event": events}).with_columns(
        least=pl.lit(LOOKED_UP_LEAST, pl.Float64), most=pl.lit(LOOKED_UP_MOST, pl.Float64)
    )
    return _found(case, chosen, max(classes for _, classes in used))


def _of_scattered(case: Case) -> Finding | None:
    """The same of matrices that are written by hand, if the next product takes one: distances to all classes often have their shape."""
    if case.runs_programs:
        return None
    made = [each for each in scattered_ones(case.trace) if each.classes >= ONE_HOT_CLASSES_LEAST]
    if not made:
        return None
    events = case.trace.events
    place = events.select(
        "step", "name", op="id", track="track", at="start_ns", end=pl.col("start_ns") + pl.col("dur_ns")
    )
    rows = _kernels(case).join(place, on="op").sort("at", maintain_order=True)
    inputs = {text: _matrices(text) for text in rows["shapes"].unique().drop_nulls()}
    used = [(each, work) for each in made if len(work := _looked_up_with(rows, inputs, each))]
    if not used:
        return None
    sides = {each.side for each, _ in used}
    turned = {(classes, count) for count, classes in sides}
    of_gradient = [
        text
        for text, found in inputs.items()
        if found and (found[0] in turned or (len(found) > 1 and found[1] in sides))
    ]
    gradients = rows.filter("product", "backward", pl.col("shapes").is_in(of_gradient))
    gradients = gradients.select("event", most=pl.lit(LOOKED_UP_MOST, pl.Float64))
    chosen = pl.concat([*(work for _, work in used), gradients]).unique("event", maintain_order=True)
    chosen = chosen.select("event", "most", least=pl.lit(LOOKED_UP_LEAST, pl.Float64))
    return _found(case, chosen, max(classes for _, classes in sides))


def _looked_up_with(
    rows: pl.DataFrame, inputs: dict[str, list[tuple[int, int]]], one: Scattered
) -> pl.DataFrame:
    """event, most of the product that takes this matrix, and of what makes it, which at worst stays if other ops read it behind the product."""
    mine = [text for text, found in inputs.items() if found and found[0] == one.side]
    forward = rows.filter(pl.col("track") == one.track, pl.col("at") >= one.start_ns, ~pl.col("backward"))
    product = forward.filter("product").head(1)
    if product.is_empty() or product["shapes"][0] not in mine:
        return product.clear().select("event", most=pl.lit(None, pl.Float64))
    begin, end = product["at"][0], product["end"][0]
    reading = forward.filter(pl.col("shapes").is_in(mine), pl.col("step") == product["step"][0])
    behind = reading.filter(pl.col("at") >= end)
    making = reading.filter(~pl.col("product"), pl.col("at") < begin)
    if not making["name"].cast(pl.String).str.contains(_MAKES).all():
        return product.clear().select("event", most=pl.lit(None, pl.Float64))
    stays = LOOKED_UP_MOST if behind.is_empty() else 1.0
    inside = forward.filter("product", pl.col("at").is_between(begin, end))
    return pl.concat(
        work.select("event", most=pl.lit(most, pl.Float64))
        for work, most in ((inside, LOOKED_UP_MOST), (making, stays))
    )


def _one_hot(case: Case) -> pl.DataFrame:
    """event, shapes of what makes one-hot matrices: the op that writes ones, or the work of a program in its scope."""
    events = case.trace.events
    ops = case.ops.select("event", "scope", shapes=pl.col("shapes").cast(pl.String)).drop_nulls("shapes")
    named = _is_named(case, rf"^{_ONE_HOT}$")
    if named.any():
        inside = ancestors(events, named).gather(ops["event"]).is_not_null()
        names = events["name"].gather(ops["event"]).cast(pl.String)
        return ops.filter(inside & (names == "aten::scatter_"))
    return ops.filter(pl.col("scope").cast(pl.String).str.contains(_SCOPE, literal=True).fill_null(False))


def _is_named(case: Case, pattern: str) -> pl.Series:
    """Which events are ops of such a name."""
    events = case.trace.events
    return is_named(events, pattern) & (events["kind"] == "op")


def _launched(case: Case, ops: pl.Series) -> pl.Series:
    """The kernels of these ops; work of a program is a kernel itself, and on a host an op is."""
    if case.device is None:
        return ops
    mine = case.trace.kernels.filter(pl.col("op").is_in(ops.implode()) | pl.col("event").is_in(ops.implode()))
    found: pl.Series = mine["event"]
    return found


def _kernels(case: Case) -> pl.DataFrame:
    """event, op, time_ns, flops, shapes, product, backward of the kernels whose op has shapes."""
    op = pl.coalesce(pl.col("op"), pl.col("event"))
    kernels = case.compute.kernels.select("event", "time_ns", "flops", product=pl.col("class") == "matmul")
    kernels = kernels.join(case.trace.kernels.select("event", op=op), on="event", how="left")
    kernels = _ops_of_host(case) if case.device is None else kernels.with_columns(op=op)
    events = case.trace.events
    on_node = ancestors(events, _is_named(case, r"Backward\d*$")).gather(kernels["op"]).is_not_null()
    calls = case.ops.select(
        op="event", shapes=pl.col("shapes").cast(pl.String), scope=pl.col("scope").cast(pl.String)
    )
    rows = kernels.with_columns(node=on_node).join(calls, on="op")
    in_scope = pl.col("scope").str.contains(_BACKWARD).fill_null(False)
    backward = pl.col("node") | in_scope
    return rows.select("event", "op", "time_ns", "flops", "shapes", "product", backward=backward)


def _ops_of_host(case: Case) -> pl.DataFrame:
    """The same of ops that compute themselves."""
    mine = case.ops.filter(pl.col("step").is_not_null())
    product = are_products(mine["name"])
    return mine.select("event", "flops", product=product, op="event", time_ns="host_self_ns")


def _matrices(text: str) -> list[tuple[int, int]]:
    """The operands as matrices of (rows, columns)."""
    try:
        shapes = msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []
    return [(math.prod(shape[:-1]), shape[-1]) for shape in shapes if len(shape) > 1 and min(shape) > 0]


RULE: Rule[Case] = Rule(
    code="one-hot-product",
    title="A product with a one-hot matrix looks up rows",
    turn=181,
    turn_without_device=99,
    page="ops",
    owns="products of the forward pass whose input is a one-hot matrix, their gradients, and the kernels that make it (without a device, the ops of PyTorch themselves), from 256 classes; in PyTorch also where a 1 is scattered into each row of zeros (`scatter_`) and the next product takes the matrix; in compiled programs, according to their code, also where the CPU itself runs those of JAX; in graphs of TensorFlow on a CPU, whose shapes are unknown, products that follow `OneHot` in the same turn of the executor, where both take at least three times as long as the op after them",
    change="2 to 15 % of their time remains, as for a lookup; a matrix that was scattered and that other ops read is still made at worst; in compiled programs, 1.3 to 4 times what the device's memory needs for the rows",
    fix={
        "pytorch": "Look the rows up: nn.Embedding, F.embedding(index, table) or table[index] instead of F.one_hot(index).float() @ table or zeros.scatter_(1, index, 1) @ table; torch.bincount counts the classes.",
        "jax": "Look the rows up: table[index] or jnp.take(table, index, axis=0) instead of jax.nn.one_hot(index) @ table.",
        "tensorflow": "Look the rows up: an Embedding layer or tf.gather(table, index) on the ids instead of tf.one_hot(index) @ table, or of CategoryEncoding before a Dense layer.",
        ANY: "Look the rows up by their index.",
    },
    find=find,
)
