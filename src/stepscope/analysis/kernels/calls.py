"""Which kernels ran: how often, how long, launched by what and how, in which number format, with tensor cores or not.

Kernels of steps count, all where there are no steps. Rows are summed by name, launching op and launch shape.
Occupancy, blocks and waves per SM are worked out from the launch and the device's limits where those are known
(`kernel_occupancy`), else as the profile recorded them: PyTorch's own occupancy is 0 for kernels with much shared memory.
A kernel is eligible for tensor cores if it is a matrix product, a convolution or attention; not if it is a product with
a vector or a depthwise convolution, which have no use for them.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.names.dtypes import is_uniform
from stepscope.analysis.kernels.names.in_file import told_by_others
from stepscope.analysis.kernels.names.label import MATRIX_FAMILIES, Context
from stepscope.analysis.kernels.names.rules import label
from stepscope.analysis.kernels.names.xla import compiled_kernels
from stepscope.analysis.kernels.occupancy import capability, launch_columns, multiprocessor, multiprocessors
from stepscope.analysis.ops.graph_calls import launch_names
from stepscope.trace.graphs import graph_work
from stepscope.trace.schema import Text
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

# Ops that are matrix products, as frameworks name them.
MATRIX_OPS = (
    r"(?i)^(aten::)?(_?convolution|conv[123]d|conv_transpose|cudnn_convolution|miopen_convolution|addmm|mm|bmm|baddbmm|addbmm|matmul|linear"
    r"|_scaled_mm|_int_mm|_grouped_mm|_addmm_activation|einsum|chain_matmul|_?scaled_dot_product|_(flash|efficient|cudnn)_attention"
    r"|_cudnn_rnn|_thnn_fused)|(MatMul|Conv[23]D|Einsum|CudnnRNN)|^(dot|convolution|custom-call)"
)
_LABEL = {"precision": pl.String, "tensor_cores": pl.Boolean, "family": pl.String}
_KEYS = ("name", "op", "grid", "block", "registers", "shared_bytes", "precision", "tensor_cores", "eligible")


def kernel_calls(trace: Trace) -> pl.DataFrame:
    """One row per kernel inside the steps: event, device, step, role, name, op, launch, precision, tensor_cores, family, eligible."""
    rows = _launches(trace)
    labels = _labels(trace, rows)
    rows = rows.join(labels, on=["name", "op", "dtypes"], how="left", nulls_equal=True, maintain_order="left")
    return rows.drop("dtypes")


def kernels_table(calls: pl.DataFrame) -> pl.DataFrame:
    """Rows of the report's kernels, the longest in total first."""
    time = pl.col("dur_ns")
    grouped = calls.group_by(_KEYS, maintain_order=True).agg(
        pl.len().alias("calls"),
        time.sum().alias("total_ns"),
        time.mean().round().cast(pl.Int64).alias("mean_ns"),
        time.min().alias("min_ns"),
        time.max().alias("max_ns"),
        *(pl.col(name).mean() for name in ("occupancy", "blocks_per_sm", "waves_per_sm")),
    )
    share = pl.col("total_ns") / pl.col("total_ns").sum()
    return grouped.with_columns(
        pl.col("name", "op").cast(pl.String), pl.col("grid", "block").arr.to_list(), share=share
    ).sort("total_ns", descending=True, maintain_order=True)


def _launches(trace: Trace) -> pl.DataFrame:
    events = trace.events
    is_kernel = events["kind"] == "kernel"
    work = events.filter(is_kernel & events["step"].is_not_null() if events["step"].count() else is_kernel)
    facts = trace.kernels.drop("warps_per_sm", "graph_node")
    at = _rows_of(facts["event"], work["id"])
    columns = [facts[name].gather(at) for name in facts.columns if name != "event"]
    rows = work.select(pl.col("id").alias("event"), "track", "name", "role", "step", "start_ns", "dur_ns")
    rows = rows.with_columns(*columns, device=trace.tracks["device"].gather(rows["track"]))
    return _launch_shapes(trace, _with_ops(trace, rows))


def _rows_of(keys: pl.Series, wanted: pl.Series) -> pl.Series:
    """For each wanted key the row that holds it, null where none does."""
    order = None if keys.is_sorted() else keys.arg_sort()
    ordered = keys if order is None else keys.gather(order)
    place = ordered.search_sorted(wanted)
    near = (
        place.clip(upper_bound=max(len(keys) - 1, 0))
        if len(keys)
        else pl.Series([None] * len(wanted), dtype=pl.UInt32)
    )
    found = pl.DataFrame({"near": near, "same": ordered.gather(near) == wanted})
    rows = found.select(pl.when("same").then("near")).to_series()
    return rows if order is None else order.gather(rows)


def _with_ops(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """The launching op's name and input types; where no op launched it, its place in the compiled program."""
    ops = trace.ops
    types = _input_types(trace, rows["op"])
    launched_by = trace.events["name"].gather(rows["op"])
    row = _rows_of(ops["event"], rows["event"])
    scope = ops["scope"].gather(row)
    in_graphs = graph_work(trace)
    if len(in_graphs):
        return _with_graphs(trace, rows.with_columns(dtypes=types, op=launched_by), scope, in_graphs, row)
    if launched_by.null_count():
        launched_by = pl.select(pl.coalesce(launched_by, scope)).to_series()
    return rows.with_columns(dtypes=types, op=launched_by)


def _with_graphs(
    trace: Trace, rows: pl.DataFrame, scope: pl.Series, work: pl.DataFrame, own: pl.Series
) -> pl.DataFrame:
    """Kernels of graphs belong to the op that the capture or the program names, else to their launch."""
    names = launch_names(trace, work)
    launch = work.select("event", "launch").join(names, on="launch", maintain_order="left")
    joined = rows.join(launch, on="event", how="left", maintain_order="left")
    captured = trace.ops["external_id"].gather(own).is_not_null()
    op = pl.select(
        pl.when(captured)
        .then(scope.cast(pl.String).str.split("/").list.last())
        .otherwise(scope.cast(pl.String))
    ).to_series()
    replayed = pl.col("launch").is_not_null()
    return joined.with_columns(
        dtypes=pl.when(replayed)
        .then(pl.coalesce(trace.ops["dtypes"].gather(own), _types_around(trace, joined["launch"])))
        .otherwise("dtypes"),
        op=pl.when(replayed)
        .then(pl.coalesce(op, "name_right"))
        .otherwise(pl.coalesce(pl.col("op").cast(pl.String), op))
        .cast(Text),
    ).drop("launch", "name_right")


def _input_types(trace: Trace, op: pl.Series) -> pl.Series:
    """The types of the op's inputs; where it has none recorded, those of the nearest op around it that has."""
    ops = trace.ops
    types = ops["dtypes"].gather(_rows_of(ops["event"], op))
    bare = types.is_null() & op.is_not_null()
    if not bare.any() or ops["dtypes"].null_count() == len(ops):
        return types
    typed = ops.filter(pl.col("dtypes").is_not_null())
    has_types = pl.repeat(False, len(trace.events), eager=True).scatter(typed["event"], True)
    around = ancestors(trace.events, has_types).gather(op)
    return pl.select(pl.coalesce(types, ops["dtypes"].gather(_rows_of(ops["event"], around)))).to_series()


def _types_around(trace: Trace, launch: pl.Series) -> pl.Series:
    """Types of the op around a launch (a compiled function), where all its floating inputs have one format."""
    found = _input_types(trace, launch)
    uniform = {
        text: text if is_uniform(text) else None for text in found.cast(pl.String).unique().drop_nulls()
    }
    kept: pl.Series = (
        found.cast(pl.String).replace_strict(uniform, default=None, return_dtype=pl.String).cast(Text)
    )
    return kept


def _launch_shapes(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """blocks_per_sm, waves_per_sm and occupancy by each device's own limits."""
    rows = rows.with_columns(
        blocks=_product("grid"),
        threads=_product("block"),
        occupancy=pl.col("occupancy").cast(pl.Float64) / 100,
        blocks_per_sm=pl.col("blocks_per_sm").cast(pl.Float64),
        waves_per_sm=pl.lit(None, dtype=pl.Float64),
    )
    known = {device.get("id"): device for device in trace.info.devices}
    parts = [
        _of_device(part, known.get(key[0], {})) for key, part in rows.group_by("device", maintain_order=True)
    ]
    return pl.concat(parts).sort("event") if parts else rows


def _of_device(rows: pl.DataFrame, device: dict[str, object]) -> pl.DataFrame:
    sm, count = multiprocessor(device), multiprocessors(device)
    if sm is not None:
        names = ("blocks_per_sm", "waves_per_sm", "occupancy")
        computed = zip(launch_columns(sm), names, strict=True)
        return rows.with_columns(pl.coalesce(own, pl.col(name)).alias(name) for own, name in computed)
    if count is not None:
        return rows.with_columns(blocks_per_sm=pl.coalesce("blocks_per_sm", pl.col("blocks") / count))
    return rows


def _product(name: str) -> pl.Expr:
    extent = pl.col(name)
    return extent.arr.get(0).cast(pl.Int64) * extent.arr.get(1) * extent.arr.get(2)


def _labels(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """The label of each name, launching op and input types that occur."""
    distinct = rows.select("name", "op", "dtypes").unique(maintain_order=True)
    names = set(distinct["name"].cast(pl.String).drop_nulls())
    compiled = compiled_kernels(trace, names) if len(trace.modules) else {}
    framework = trace.info.framework
    devices = [capability(device) for device in trace.info.devices]
    known = devices[0] if devices else None
    kind = next((device.get("kind") for device in trace.info.devices), None)
    found = [
        label(name or "", Context(op, dtypes, framework, known, compiled.get(name or ""), kind))
        for name, op, dtypes in distinct.iter_rows()
    ]
    columns = {name: [getattr(one, name) for one in found] for name in _LABEL}
    labels = distinct.hstack(pl.DataFrame(columns, schema=_LABEL))
    return told_by_others(labels).with_columns(eligible=_eligible())


def _eligible() -> pl.Expr:
    """A family that is known decides; else the launching op, if it is a matrix product."""
    family = pl.col("family")
    by_op = pl.when(pl.col("op").cast(pl.String).str.contains(MATRIX_OPS)).then(True)
    return (
        pl.when(pl.col("tensor_cores") | family.is_in(MATRIX_FAMILIES))
        .then(True)
        .when(family.is_in(["unknown", "fusion"]))
        .then(by_op)
        .otherwise(False)
    )
