"""A layer that is applied to gathered rows, most of which are the same: the table they come from is smaller."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.concatenated import Concatenated, concatenated_rows, may_have_concatenated
from stepscope.analysis.xla.gathered import Gathered, gathered_rows
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.policy.useless_work import (
    FUSED_GATHER_LEAST,
    FUSED_GATHER_MOST,
    REPEATED_ROWS_COVERED,
    REPEATED_ROWS_LEAST,
    REPEATED_ROWS_MOST,
    REPEATED_ROWS_PADDED,
)
from stepscope.trace.scopes import ancestors
from stepscope.units import percent

_GATHERS = ("aten::index_select", "aten::index", "aten::embedding")
_PRODUCTS = ("aten::linear", "aten::mm", "aten::addmm", "aten::matmul")
# What treats every row alike, if all else that it is given is a vector of weights.
_BY_ROW = r"^aten::(relu_?|gelu|silu_?|tanh|sigmoid|elu|leaky_relu_?|softplus|hardtanh_?|layer_norm|rms_norm|t|view|reshape|contiguous|to|flatten|mul|div)$"
_BACKWARD = r"transpose\(|Backward"
_OTHER_OPS = r"gather|scatter|index"
_SCATTERS = r"scatter|index_add|index_put|embedding_dense_backward"
# They combine rows with others: whatever made these rows, they stay.
_COMBINES = (
    r"^aten::(amax|amin|max|min|sum|mean|logsumexp|prod|any|all|var|std|median|sort|topk|bmm|baddbmm)$"
)
_SUMS_OF_GRADIENTS = (
    "aten::add_",
    "aten::add",
)  # as the engine adds up what several users of a tensor return
Matrix = tuple[int, int]
_SPLIT = {
    "pytorch": "Split the weight by the parts, apply each to its table and add what is gathered: w1, w2 = layer.weight.split(x.shape[1], 1); F.linear(x, w1)[src] + F.linear(x, w2, layer.bias)[dst] instead of layer(torch.cat([x[src], x[dst]], -1)).",
}


def find(case: Case) -> Finding | None:
    """Products whose input is gathered rows alone, and what else is done to as many rows."""
    gathered = _in_programs(case) if case.runs_programs else _in_ops(case)
    if not gathered:
        return None if case.runs_programs else _of_concatenations(case)
    most = max(gathered, key=lambda each: each.rows)
    chosen = _kernels(case, most, [one for one in gathered if one.rows == most.rows])
    why = (
        f"is spent on {most.rows:,} rows that are gathered from a table of {most.table:,}: the same rows are computed "
        f"about {most.rows / most.table:,.0f} times."
    )
    evidence = {"rows": most.rows, "table": most.table}
    return of_kernels(
        case, RULE, chosen, why, owned=chosen.filter(pl.col("most") <= 1)["event"], evidence=evidence
    )


def _of_concatenations(case: Case) -> Finding | None:
    """Products whose input joins rows of several gathers: each part of the weights can be applied to its table."""
    if not may_have_concatenated(case.ops["name"].unique().cast(pl.String).to_list()):
        return None
    joined = concatenated_rows(_calls(case))
    if not joined:
        return None
    rows = _described(case)
    chosen = pl.concat([_of_concatenation(rows, each) for each in joined]).unique(
        "event", maintain_order=True
    )
    most = max(joined, key=lambda each: each.rows)
    why = (
        f"is spent on a layer whose input joins {most.rows:,} rows that are gathered from a table of {most.table:,}: applied to "
        f"the table, {percent(most.share)} of the products' work is left."
    )
    evidence = {"rows": most.rows, "table": most.table, "parts": most.parts}
    found = of_kernels(case, RULE, chosen, why, evidence=evidence)
    if found is not None:
        found.fix = _SPLIT.get(case.trace.info.framework or "", RULE.fix[ANY])
    return found


def _calls(case: Case) -> list[tuple[int, str, str | None]]:
    """What the program itself calls in the first step, in order: thread, name and shapes."""
    events = case.trace.events
    inside = ancestors(events, (events["kind"] == "op").fill_null(False))
    ops = case.ops.filter(pl.col("step") == case.lengths["step"].min())
    ops = ops.with_columns(start=events["start_ns"].gather(ops["event"]), around=inside.gather(ops["event"]))
    mine = ops.filter(pl.col("around").is_null()).sort("track", "start")
    return mine.select("track", pl.col("name", "shapes").cast(pl.String)).rows()


def _of_concatenation(rows: pl.DataFrame, joined: Concatenated) -> pl.DataFrame:
    """event, least, most of the products with it, those of their gradients, the sum for the bias, and the concatenation."""
    height, width, results = joined.rows, joined.columns, joined.results
    products = [
        {(height, width), (width, results)},
        {(height, results), (results, width)},
        {(results, height), (height, width)},
    ]
    known = {text: _matrices(text) for text in rows["shapes"].unique().drop_nulls()}
    mine = [text for text, given in known.items() if set(given) in products]
    of_product = pl.col("product") & pl.col("shapes").is_in(mine)
    others = [text for text, given in known.items() if (height, results) in given and text not in mine]
    alone = rows.filter(pl.col("product"), pl.col("shapes").is_in(others)).is_empty()
    summed = [text for text, given in known.items() if given == [(height, results)]] if alone else []
    of_bias = (pl.col("called") == "aten::sum") & pl.col("backward") & pl.col("shapes").is_in(summed)
    least, most = joined.share, min(1.0, REPEATED_ROWS_MOST * joined.share)
    copied = rows.filter(
        pl.col("called") == "aten::cat", pl.col("shapes").str.contains(rf"\[{height}, *\d+\]")
    )
    return pl.concat(
        [
            _left(rows.filter(of_product | of_bias)["event"], least, most),
            _left(copied["event"], min(1.0, joined.joined), 1.0),
        ]
    )


def _in_programs(case: Case) -> list[Gathered]:
    # To look for the word takes far less than to read a program.
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace) if b"gather" in hlo}
    return [each for hlo in codes for each in gathered_rows(read_module(hlo))]


def _in_ops(case: Case) -> list[Gathered]:
    """The same of ops: after a gather follow, on the same thread, ops that treat each row alike, with a product among them."""
    if not case.ops["name"].unique().cast(pl.String).is_in(_GATHERS).any():
        return []
    # What these ops are made of is up to PyTorch: index_select calls gather in some versions.
    schema = {"track": pl.UInt32, "name": pl.String, "shapes": pl.String}
    rows = pl.DataFrame(_calls(case), schema=schema, orient="row")
    by_row = rows["name"].str.contains(_BY_ROW)
    found: list[Gathered] = []
    current, width, track = None, 0, None
    for (thread, name, text), alike in zip(rows.iter_rows(), by_row, strict=True):
        given = _matrices(text)
        if name in _GATHERS and given:
            current, track = Gathered(0, given[0][0]), thread
            width = given[0][1]
        elif current is None or thread != track:
            current = None
        elif name in _PRODUCTS and _is_given(current, width, given):
            width = next((side for side in given[-1] if side != width), width)
            found += [] if current in found else [current]
        elif not alike or len(given) > 1:
            current = None
    return found


def _is_given(gathered: Gathered, width: int, given: list[Matrix]) -> bool:
    """Whether the product gets the gathered rows, many more than the table has; notes them."""
    inputs = [each for each in given[:2] if each[1] == width]
    if not inputs:
        return False
    rows = inputs[0][0]
    if rows < REPEATED_ROWS_LEAST * gathered.table or gathered.rows not in (0, rows):
        return False
    gathered.rows = rows
    gathered.inputs.add(inputs[0])
    return True


def _kernels(case: Case, gathered: Gathered, alike: Iterable[Gathered]) -> pl.DataFrame:
    """event, least, most of the kernels that work on the gathered rows; of the forward products alone where others need more.

    Without a product between them, a compiler fuses the gather and the sum over its rows: the rows are never written.
    """
    rows = _described(case)
    known = {text: _matrices(text) for text in rows["shapes"].unique().drop_nulls()}
    given = {text: _is_row_work(gathered.rows, text, found) for text, found in known.items()}
    combines = pl.col("called").str.contains(_COMBINES).fill_null(False) & ~pl.col("backward")
    of_rows = rows.filter(
        pl.col("shapes").is_in([text for text, is_mine in given.items() if is_mine]),
        ~pl.col("moves") & ~combines,
    )
    products = of_rows.filter(pl.col("product"), ~pl.col("backward"))
    inputs = {each for one in alike for each in one.inputs}
    mine = [text for text, found in known.items() if any(each in found[:2] for each in inputs)]
    proven = products.filter(pl.col("shapes").is_in(mine))
    covered = int(proven["time_ns"].sum()) >= REPEATED_ROWS_COVERED * int(products["time_ns"].sum())
    share = gathered.table / gathered.rows
    least, most = share, min(1.0, REPEATED_ROWS_MOST * share)
    layers, gathers = (0, 0) if case.runs_programs else _count(case, gathered, inputs)
    if covered and gathers > 1 and _meet(gathered.rows, of_rows, known):
        return _of_layers(rows, of_rows, gathered, layers / gathers, (least, most))
    chosen = [_left((of_rows if covered else proven)["event"], least, most)]
    if covered and len(of_rows.filter(pl.col("product"), pl.col("backward"))):
        chosen.append(_missing_gradients(case, rows, gathered, gathers))
    if covered and case.runs_programs:
        joining = {one.by for one in alike}
        moving = [text for text in known if f"[{gathered.rows}]" in text or text in joining]
        others = rows.filter(pl.col("shapes").is_in(moving))
        chosen.append(_left(others["event"], FUSED_GATHER_LEAST, FUSED_GATHER_MOST))
    return pl.concat(chosen).unique("event", maintain_order=True)


def _missing_gradients(case: Case, rows: pl.DataFrame, gathered: Gathered, gathers: int) -> pl.DataFrame:
    """event, least, most of the sums over rows, which become more where tables have no gradients yet, such as data: what a layer makes
    of a table has one for each gather."""
    scatters = rows.filter(pl.col("called").str.contains(_SCATTERS).fill_null(False), _is_of_size(gathered))
    calls, backward = (
        each["op"].n_unique() / case.step_count for each in (scatters, scatters.filter(pl.col("backward")))
    )
    grow = 1 + max(0.0, gathers - backward) / calls if calls else 1.0
    return _left(scatters["event"] if grow > 1 else scatters["event"].clear(), grow, grow)


def _is_of_size(gathered: Gathered) -> pl.Expr:
    """Ops that move the rows between them and the table."""
    shapes = pl.col("shapes")
    return shapes.str.contains(rf"\[{gathered.rows}\b") & shapes.str.starts_with(f"[[{gathered.table},")


def _count(case: Case, gathered: Gathered, inputs: set[Matrix]) -> tuple[int, int]:
    """How many products the program applies to such rows in a step, and how often it gathers them."""
    products = gathers = 0
    for _, name, text in _calls(case):
        given = _matrices(text)
        if name in _PRODUCTS:
            products += any(each in inputs for each in given[:2])
        elif name in _GATHERS and given:
            gathers += given[0][0] == gathered.table and f"[{gathered.rows}]" in (text or "")
    return products, gathers


def _meet(height: int, of_rows: pl.DataFrame, known: dict[str, list[Matrix]]) -> bool:
    """Whether rows of one gather are combined with those of another: that is different for each of them, and stays."""
    forward = of_rows.filter(~pl.col("product"), ~pl.col("backward"))["shapes"].unique()
    return any([rows for rows, _ in known[text]].count(height) > 1 for text in forward)


def _of_layers(
    rows: pl.DataFrame,
    of_rows: pl.DataFrame,
    gathered: Gathered,
    gathers: float,
    share: tuple[float, float],
) -> pl.DataFrame:
    """event, least, most of the products, their gradients and the sums for biases, of which a share of the rows stays.

    `gathers`: by how much the gathers grow, and the sums of their gradients, where several layers are applied to the rows of one; these
    need no sum over the layers then.
    """
    several = gathers > 1
    of_bias = pl.col("backward") & (pl.col("called") == "aten::sum")
    over_layers = pl.col("called").is_in(_SUMS_OF_GRADIENTS) & pl.col("backward") & several
    kernels = of_rows.filter(pl.col("product") | of_bias | over_layers)["event"]
    scatters = pl.col("called").str.contains(_SCATTERS)
    again = rows.filter(pl.col("moves") & _is_of_size(gathered), scatters == pl.col("backward"))["event"]
    layers = _left(kernels, *share)
    return pl.concat([layers, _left(again, gathers, gathers)]) if several else layers


def _left(events: pl.Series, least: float, most: float) -> pl.DataFrame:
    return pl.DataFrame({"event": events}).with_columns(
        least=pl.lit(least, pl.Float64), most=pl.lit(most, pl.Float64)
    )


def _described(case: Case) -> pl.DataFrame:
    """event, op, time_ns, shapes, product, called, backward, moves of the kernels whose op has shapes."""
    op = pl.coalesce(pl.col("op"), pl.col("event"))
    kernels = case.compute.kernels.select("event", "time_ns", product=pl.col("class").is_in(PRODUCTS))
    kernels = kernels.join(case.trace.kernels.select("event", op=op), on="event", how="left")
    calls = case.ops.select(
        op="event",
        shapes=pl.col("shapes").cast(pl.String),
        scope=pl.col("scope").cast(pl.String),
        called=pl.col("name").cast(pl.String),
        forward=pl.col("forward").is_not_null(),
    )
    rows = kernels.with_columns(op=op).join(calls, on="op").drop_nulls("shapes")
    backward = pl.col("forward") | pl.col("scope").str.contains(_BACKWARD).fill_null(False)
    moves = pl.col("called").str.contains(_OTHER_OPS).fill_null(False)
    return rows.select(
        "event", "op", "time_ns", "shapes", "product", "called", backward=backward, moves=moves
    )


def _is_row_work(rows: int, text: str, given: list[Matrix]) -> bool:
    """Whether it has an input with that number of rows, and no list of as many indices: gathers and scatters stay."""
    if f"[{rows}]" in text:
        return False
    sides = [side for matrix in given for side in matrix]
    return any(rows <= side < REPEATED_ROWS_PADDED * rows for side in sides)


def _matrices(text: str | None) -> list[Matrix]:
    """The inputs of two and more dimensions as rows and columns."""
    try:
        shapes = msgspec.json.decode(text or "[]", type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []
    return [(math.prod(shape[:-1]), shape[-1]) for shape in shapes if len(shape) > 1 and min(shape) > 0]


RULE: Rule[Case] = Rule(
    code="repeated-rows",
    title="A layer is applied to gathered rows, most of which are the same",
    turn=184,
    page="ops",
    owns="products whose input consists of rows gathered from a table with half as many rows or fewer, or of sums and concatenations of such rows, their gradients, and all other work on as many rows that does not combine them; outside compiled programs without gathers and scatters, and of the products alone if rows of several gathers are combined behind them",
    change="their time shrinks to the share of the table's rows, at most twice that; if several layers are applied to the rows of one gather, each takes a gather and a scatter of its gradients of its own, and so does a layer whose table had no gradient, such as data. In compiled programs, 10 to 60 % of the time of gathers and scatters, which a compiler then fuses, remains",
    fix={
        "pytorch": "Apply the layer to the table first, then gather: layer(nodes)[index] instead of layer(nodes[index]). It is the same where the layer needs one row at a time.",
        "jax": "Apply the layer to the table first, then gather: layer(nodes)[index] instead of layer(nodes[index]). It is the same where the layer needs one row at a time. For two joined rows split the weights: (nodes @ w1)[source] + (nodes @ w2)[target] instead of concatenate([nodes[source], nodes[target]]) @ w.",
        "tensorflow": "Apply the layer to the table first, then gather: tf.gather(layer(nodes), index) instead of layer(tf.gather(nodes, index)).",
        ANY: "Apply the layer to the table first, then gather its results.",
    },
    find=find,
    needs_device=True,
)
