"""The FLOPs and least bytes of each kernel: those of the op that it works for, once per call of the op.

The innermost op with a formula owns a kernel. Kernels of one call share its work by their time; in a matrix product, a
convolution or attention the kernels that multiply have all of it, and what only helps them (a padding, a sum over parts) none.
A kernel of a compiled program has the work of its instruction, one of a captured graph that of the op that was captured.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.compute.long_lists import with_long_lists
from stepscope.analysis.formulas.call import Cost
from stepscope.analysis.formulas.constants import PRECISION_BYTES
from stepscope.analysis.ops.flops import KEY, cost_of, sizes, total_bytes
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.schema import Columns
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_OPAQUE = r"OpaqueType<(\d+)"  # PyTorch's copies know the size of an element and not its type
_WORK: Columns = {
    "flops": pl.Int64,
    "bytes": pl.Int64,
    "reads": pl.List(pl.Int64),
    "writes": pl.List(pl.Int64),
}


def kernel_work(trace: Trace, kernels: pl.DataFrame, op_calls: pl.DataFrame) -> pl.DataFrame:
    """call, flops, bytes, set_bytes, reads, writes for each of the kernels (with `class`), in their order.

    `call` numbers calls of ops; `set_bytes` is what the whole call touches, reads and writes are its tensors, of its first
    kernel only.
    """
    owner = _owners(trace, kernels, op_calls)
    facts = _facts(trace, kernels, owner)
    call = pl.select(pl.coalesce(owner, kernels["event"]).cast(pl.Int64)).to_series()
    rows = kernels.select("class", "dur_ns", "start_ns", "track").hstack(facts.with_columns(call=call))
    rows = _of_programs(rows, op_calls, trace, kernels)
    rows = with_long_lists(trace, kernels.with_columns(_item(kernels)), rows)
    return _share(rows)


def _owners(trace: Trace, kernels: pl.DataFrame, op_calls: pl.DataFrame) -> pl.Series:
    """The event that a kernel works for: itself in a compiled program, an op with a formula, or the op that launched it."""
    events = trace.events
    known = op_calls.filter(pl.col("flops").is_not_null())["event"]
    has_formula = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(known, True)
    in_ops = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(trace.ops["event"], True)
    kernel = kernels["event"]
    row = rows_by_event(trace.kernels["event"], len(events)).gather(kernel)
    op = trace.kernels["op"].gather(row)
    above = ancestors(events, has_formula).gather(op)
    return pl.select(
        pl.when(in_ops.gather(kernel))
        .then(kernel)
        .when(has_formula.gather(op).fill_null(False))
        .then(op)
        .otherwise(pl.coalesce(above, op))
    ).to_series()


def _facts(trace: Trace, kernels: pl.DataFrame, owner: pl.Series) -> pl.DataFrame:
    """owner, and the cost of the op: name, shapes, dtypes and inputs are judged once each."""
    ops, events = trace.ops, trace.events
    row = rows_by_event(ops["event"], len(events)).gather(owner)
    is_own = (owner == kernels["event"]).fill_null(False)
    texts = {
        "name": events["name"].gather(owner),
        "scope": ops["scope"].gather(row),
        **{key: ops[key].gather(row) for key in KEY[1:]},
    }
    # Numbers of names and shapes are compared, not the texts themselves.
    codes = pl.DataFrame({key: column.to_physical() for key, column in texts.items()}).with_columns(
        _item(kernels), own=is_own, plain=kernels["class"] == "elementwise"
    )
    keys = codes.columns
    distinct = codes.with_row_index("row").unique(keys, keep="first", maintain_order=True)
    judged = [_figures(_cost(*each)) for each in _written(texts, distinct).iter_rows()]
    columns = zip(*judged, strict=True) if judged else [[]] * len(_WORK)
    made = [
        pl.Series(name, list(values), dtype=kind)
        for (name, kind), values in zip(_WORK.items(), columns, strict=True)
    ]
    costs = distinct.drop("row").with_columns(made)
    joined = codes.join(costs, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.select(*_WORK, owner=owner)


def _written(texts: dict[str, pl.Series], distinct: pl.DataFrame) -> pl.DataFrame:
    """What the distinct rows say, as text."""
    at = distinct["row"]
    columns = {key: column.gather(at).cast(pl.String) for key, column in texts.items()}
    return pl.DataFrame(columns).hstack(distinct.select("item", "own", "plain"))


def _cost(
    name: str | None,
    scope: str | None,
    shapes: str | None,
    dtypes: str | None,
    inputs: str | None,
    item: int | None,
    is_own: bool,
    is_plain: bool,
) -> Cost | None:
    """A kernel that is its own op has the op's name at the end of its scope."""
    op = (scope or "").rpartition("/")[2] if is_own else name
    return cost_of(op, shapes, dtypes, inputs, item, is_plain)


def _figures(cost: Cost | None) -> tuple[int | None, int | None, list[int], list[int]]:
    if cost is None:
        return None, None, [], []
    reads, writes = sizes(cost.reads), sizes(cost.writes)
    if reads is None or writes is None or total_bytes(cost) is None:
        return cost.flops, None, [], []
    return cost.flops, total_bytes(cost), reads, writes


def _item(kernels: pl.DataFrame) -> pl.Series:
    """Bytes of an element as the kernel's own name has them."""
    opaque = pl.col("name").cast(pl.String).str.extract(_OPAQUE).cast(pl.Int64, strict=False)
    by_format = pl.col("precision").replace_strict(PRECISION_BYTES, default=None, return_dtype=pl.Int64)
    distinct = kernels.select("name", "precision").unique()
    judged = distinct.with_columns(item=pl.coalesce(opaque, by_format))
    joined = kernels.select("name", "precision").join(
        judged, on=["name", "precision"], how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["item"]


def _of_programs(
    rows: pl.DataFrame, op_calls: pl.DataFrame, trace: Trace, kernels: pl.DataFrame
) -> pl.DataFrame:
    """Kernels of compiled programs and captured graphs: work of the instruction, and one call where they follow each other."""
    is_own = rows["owner"] == kernels["event"]
    if not is_own.fill_null(False).any():
        return rows
    row = rows_by_event(op_calls["event"], len(trace.events)).gather(kernels["event"])
    told = pl.DataFrame(
        {
            "told_flops": op_calls["flops"].gather(row),
            "told_bytes": op_calls["bytes"].gather(row),
            "told": op_calls["name"].gather(row).to_physical(),
            "scope": op_calls["scope"].gather(row).to_physical(),
            "sizes": op_calls["shapes"].gather(row).to_physical(),
            "kernel": kernels["name"].to_physical(),
            "own": is_own.fill_null(False),
            "alone": trace.tracks["device_kind"].gather(kernels["track"]) == "tpu",
        }
    )
    both = rows.hstack(told)
    ordered = _in_runs(both.with_row_index("place").sort("track", "start_ns"))
    first = pl.col("call").first().over("run", "turn")
    flops, size = (pl.col(name).max().over("run") for name in ("told_flops", "told_bytes"))
    joined = ordered.with_columns(
        call=pl.when("own").then(first).otherwise("call"),
        flops=pl.when("own").then(pl.coalesce(flops, "flops")).otherwise("flops"),
        bytes=pl.when("own").then(pl.coalesce(size, "bytes")).otherwise("bytes"),
    )
    return joined.sort("place").select(rows.columns)


def _in_runs(ordered: pl.DataFrame) -> pl.DataFrame:
    """`run`: kernels of one instruction that follow each other; `turn`: which time it runs.

    On a TPU an instruction is one event. Elsewhere a kernel that comes again begins another turn; in a product only the kernels that multiply count, the others help them.
    """
    changed = pl.any_horizontal(
        (pl.col(name) != pl.col(name).shift(1)).fill_null(True) for name in ("told", "scope", "sizes")
    )
    multiplies = pl.col("class").is_in(PRODUCTS)
    helps = multiplies.any().over("run") & ~multiplies
    again = pl.int_range(pl.len()).over("run", "kernel")
    return ordered.with_columns(run=(changed | ~pl.col("own") | pl.col("alone")).cum_sum()).with_columns(
        turn=pl.when(helps).then(0).otherwise(again)
    )


def _share(rows: pl.DataFrame) -> pl.DataFrame:
    """Work of a call by the time of its kernels; the helpers of products have none."""
    alone = pl.repeat(1.0, len(rows), eager=True)
    several = rows.select("call", "class", "dur_ns").filter(rows["call"].is_duplicated())
    place = rows["call"].is_duplicated().arg_true()
    share = alone.scatter(place, _shares(several)) if len(several) else alone
    first = pl.col("call").is_first_distinct()
    none = pl.lit([], dtype=pl.List(pl.Int64))
    return rows.with_columns(share=share).select(
        "call",
        flops=pl.col("flops") * pl.col("share"),
        bytes=pl.col("bytes") * pl.col("share"),
        set_bytes="bytes",
        helps=pl.col("share") == 0,
        reads=pl.when(first).then("reads").otherwise(none),
        writes=pl.when(first).then("writes").otherwise(none),
    )


def _shares(several: pl.DataFrame) -> pl.Series:
    """Shares of calls with several kernels."""
    multiplies = pl.col("class").is_in(PRODUCTS)
    works = ~multiplies.any().over("call") | multiplies
    time = pl.when(works).then(pl.col("dur_ns").clip(lower_bound=1)).otherwise(0)
    timed = several.select("call", time=time)
    return timed.select(pl.col("time") / pl.col("time").sum().over("call")).to_series()
