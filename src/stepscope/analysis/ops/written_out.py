"""Layers that PyTorch has as one op and the job writes out in arithmetic: norms, activations, softmax, rotary embeddings.

A profile does not identify tensors, but formulas are written in a few ways, and each gives an order of ops that no other code has by
chance: a square, a mean, a sum with a constant, an inverse root and a product are an RMS norm. They are searched for among the kernels
of one chain. What autograd computes for the ops of a formula goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from stepscope.analysis.ops.forward_backward import forward_ops
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.columns import repeated
from stepscope.trace.schema import Columns
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

WRITTEN_OUT: Columns = {
    "event": pl.UInt32,
    "formula": pl.UInt32,
    "layer": pl.String,
    "backward": pl.Boolean,
    "top": pl.UInt32,
    "whole_ns": pl.Int64,
    "pass_ns": pl.Int64,
}
# One letter for each op whose kernels formulas are made of; what runs between them has none, and ends a formula.
_LETTERS = {
    "add": "a", "sub": "s", "rsub": "s", "mul": "m", "div": "d", "pow": "p", "square": "p", "mean": "M", "sum": "S",
    "var": "v", "std": "V", "var_mean": "B", "rsqrt": "r", "sqrt": "q", "reciprocal": "i", "tanh": "t", "erf": "f",
    "exp": "e", "log": "l", "log1p": "l", "neg": "n", "cat": "k", "amax": "X", "max": "X",
}  # fmt: skip
_OTHER = "."
# The names under which a job calls them: these ops launch their kernels inside another.
_ALSO = {
    "square": "pow", "stack": "cat", "concat": "cat", "concatenate": "cat", "true_divide": "div", "divide": "div",
    "multiply": "mul", "subtract": "sub", "negative": "neg",
}  # fmt: skip
_CASTS = ("aten::to", "aten::_to_copy", "aten::type_as")
_ROOT = "(?:r[md]|qi?[md]|d)"  # the product with an inverse root, or the division by a root
_ORDERS = {
    "layer norm": rf"(?:M[vV]s|[vV]Ms|Ms[vV]|Bs|Ms[pm]Ms?)m?a{_ROOT}(?:ma?)?",
    "RMS norm": r"[pm](?:M|S[md])a(?:r|qi?)[md]m?",
    "GELU": r"m?[pm]{1,4}am?ta[md]{1,2}|[md]{1,2}fa[md]{1,2}",
    "mish": r"ea?ltm",
    "SiLU": r"nea[di]m?",
    "softmax": r"(?:Xs{1,2})?eS(?:d|la?s?)",
    "rotary embedding": r"m?nkm{1,2}a|mmsmmak",
}
WITHOUT_OP = "rotary embedding"  # which nobody can write otherwise without a compiler
NORMS = ("layer norm", "RMS norm")
_SEARCH = re.compile("|".join(f"(?P<{name.replace(' ', '_')}>{order})" for name, order in _ORDERS.items()))
_TELLING = r"^aten::(rsqrt|sqrt|tanh|erf|exp|std|cat)_?$"  # one of these is in each


def written_out(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """The kernels (event, op, chain, class, time_ns, bytes) of such formulas, each formula with a number.

    `top` is the outermost op around a kernel; `whole_ns` is the time of the formula's kernels in the same pass, forward or backward, and
    `pass_ns` that of the shortest kernel which reads and writes all elements in the forward pass.
    """
    known = kernels.drop_nulls("chain")
    if not _are_there(known["op"]):
        return pl.DataFrame(schema=WRITTEN_OUT)
    rows = _in_order(trace, known)
    forward = _found(rows.filter(~pl.col("in_node")))
    if not (forward["layer"] != WITHOUT_OP).any():
        return pl.DataFrame(schema=WRITTEN_OUT)
    both = pl.concat([forward, _gradients(trace, rows, forward)])
    passes = _passes(forward)
    return (
        both.join(passes, on="formula")
        .with_columns(whole_ns=pl.col("time_ns").sum().over("formula", "backward"))
        .select(pl.col(name).cast(kind) for name, kind in WRITTEN_OUT.items())
    )


def _are_there(ops: pl.Series) -> bool:
    names = ops.unique().cast(pl.String)
    return bool(names.str.contains(_TELLING).any())


def _in_order(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """The kernels as they ran, with the outermost op around each and whether that is a node of autograd's."""
    events = trace.events
    is_op = (events["kind"] == "op").fill_null(False)
    is_top = is_op & ancestors(events, is_op).is_null()
    top = pl.select(pl.when(is_top).then(events["id"]).otherwise(ancestors(events, is_top))).to_series()
    launched = trace.kernels.select("event", top=top.gather(trace.kernels["op"]))
    rows = kernels.select("event", "chain", "op", "class", "time_ns", "bytes").join(launched, on="event")
    rows = rows.with_columns(
        start_ns=events["start_ns"].gather(rows["event"]),
        called=events["name"].gather(rows["top"]).cast(pl.String),
    )
    in_node = pl.col("called").str.starts_with("autograd::").fill_null(True)
    return rows.with_columns(in_node=in_node).sort("chain", "start_ns")


def _found(rows: pl.DataFrame) -> pl.DataFrame:
    """The kernels of the formulas of the forward pass, with their numbers and layers."""
    judged = rows.join(
        _letters(rows), on=["op", "called"], how="left", nulls_equal=True, maintain_order="left"
    )
    # Casts may be anywhere in a formula: the search leaves them out, and those next to one belong to it.
    judged = judged.with_row_index("row")
    arithmetic = judged.filter(pl.col("letter") != "c")
    ends = arithmetic["chain"] != arithmetic["chain"].shift(-1)
    text = "".join(
        letter + ("|" if end else "")
        for letter, end in zip(arithmetic["letter"], ends.fill_null(True), strict=True)
    )
    spans = [(layer, begin, end) for layer, begin, end in _search(text)]
    return _within(judged, arithmetic, spans)


def _letters(rows: pl.DataFrame) -> pl.DataFrame:
    """op, called, letter: once for each pair of an op and the one around it."""
    pairs = rows.select("op", "called").unique(maintain_order=True)
    return pairs.with_columns(
        letter=pl.Series([_letter(*pair) for pair in pairs.iter_rows()], dtype=pl.String)
    )


def _letter(op: str | None, called: str | None) -> str:
    if called in _CASTS:
        return "c"
    name, outside = ((each or "").removeprefix("aten::").rstrip("_") for each in (op, called))
    is_own = _ALSO.get(outside, outside) == _ALSO.get(name, name)
    return _LETTERS.get(name, _OTHER) if is_own else _OTHER


def _search(text: str) -> Iterator[tuple[str, int, int]]:
    """Layer, first and last place (casts are not counted) of each formula."""
    ends_before = 0
    at = 0
    for match in _SEARCH.finditer(text):
        ends_before += text.count("|", at, match.start())
        at = match.start()
        layer = (match.lastgroup or "").replace("_", " ")
        yield layer, match.start() - ends_before, match.end() - 1 - ends_before


def _within(
    judged: pl.DataFrame, arithmetic: pl.DataFrame, spans: list[tuple[str, int, int]]
) -> pl.DataFrame:
    """The kernels of the spans, and casts between and next to them, with columns formula and layer."""
    row = arithmetic["row"].to_list()
    letter, chain = judged["letter"].to_list(), judged["chain"].to_list()
    found: dict[str, list[int | str]] = {"row": [], "formula": [], "layer": []}
    taken = -1
    for number, (layer, first, last) in enumerate(spans):
        begin, end = row[first], row[last]
        if begin - 1 > taken and letter[begin - 1] == "c" and chain[begin - 1] == chain[begin]:
            begin -= 1
        if end + 1 < len(letter) and letter[end + 1] == "c" and chain[end + 1] == chain[end]:
            end += 1
        mine = range(max(begin, taken + 1), end + 1)
        taken = end
        found["row"] += mine
        found["formula"] += [number] * len(mine)
        found["layer"] += [layer] * len(mine)
    schema = {"row": pl.UInt32, "formula": pl.UInt32, "layer": pl.String}
    return judged.join(pl.DataFrame(found, schema=schema), on="row").with_columns(backward=pl.lit(False))


def _gradients(trace: Trace, rows: pl.DataFrame, forward: pl.DataFrame) -> pl.DataFrame:
    """What autograd computes for the formulas: the kernels inside the nodes of their ops."""
    of_op = forward_ops(trace)
    if of_op is None:
        return forward.clear()
    events = trace.events
    tops = forward.select("top", "formula", "layer").unique("top")
    wanted = repeated(False, len(events), pl.Boolean).scatter(tops["top"], True)
    around = pl.select(pl.when(wanted).then(events["id"]).otherwise(ancestors(events, wanted))).to_series()
    nodes = rows.filter("in_node")
    nodes = nodes.with_columns(node="top", top=around.gather(of_op.gather(nodes["top"])))
    mine = nodes.join(tops, on="top").with_columns(top="node", backward=pl.lit(True))
    return mine.select(name if name in mine.columns else pl.lit(None).alias(name) for name in forward.columns)


def _passes(forward: pl.DataFrame) -> pl.DataFrame:
    """formula, pass_ns: as long as a kernel takes that reads all elements once and writes them once."""
    whole = pl.col("bytes") > MAJORITY / 2 * pl.col("bytes").max().over("formula")
    moves = forward.filter(pl.col("class") != "reduction", whole)
    return moves.group_by("formula").agg(pass_ns=pl.col("time_ns").min())
