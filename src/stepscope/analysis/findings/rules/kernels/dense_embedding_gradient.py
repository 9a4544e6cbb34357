"""Gradients and updates of whole embedding tables, of which a batch touches a few rows."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import polars as pl

from stepscope.analysis.compute.host_tables import looked_up_tables, table_passes
from stepscope.analysis.compute.program_tables import program_tables, rows_left, whole_passes
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.dispatched import at_or_below
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import of_kernels, shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.spread import OF_UPDATES, Spread
from stepscope.analysis.replay.plan import Plan
from stepscope.lazy import dataclass
from stepscope.native.host import replay as native
from stepscope.registers.calibration.kernels import (
    FEW_ROWS_GRADIENT_KERNELS,
    FUSED_ADAM_TENSORS,
    FUSED_MOMENTUM_TENSORS,
    LIGHTEST_PASS_TENSORS,
    PARAMETER_BYTES,
    SPARSE_ADAGRAD_ELEMENT_BYTES,
    SPARSE_ADAGRAD_HOST_NS,
    SPARSE_ADAM_ELEMENT_BYTES,
    SPARSE_ADAM_HOST_NS,
    SPARSE_PROGRAM_UPDATE_WORST,
    SPARSE_ROW_BYTES,
    SPARSE_SGD_HOST_NS,
    SPARSE_SORT_BYTES,
    SPARSE_UPDATE_WORST,
)
from stepscope.registers.policy.device_findings import DENSE_TABLE_LEAST, FEW_ROWS_OF_TABLE, LIGHT_PASS
from stepscope.registers.policy.findings import DECIDED_BY_DEVICE, MAJORITY
from stepscope.trace.frames import take_smallest
from stepscope.trace.scopes import ancestors
from stepscope.units import percent, size

_BACKWARD = "aten::embedding_dense_backward"
_STEP = "Optimizer.step#"


def find(case: Case) -> Finding | None:
    """Tables with dense gradients, in a step that spends its time on zeroing and updating them."""
    tables = _sparse_tables(case)
    if case.device is None:
        return None if tables.is_empty() else _on_host(case, tables)
    return _in_programs(case) if tables.is_empty() else _by_optimizer(case, tables)


def _on_host(case: Case, tables: pl.DataFrame) -> Finding | None:
    """The ops of PyTorch that fill and update whole tables, which compute by themselves."""
    tables = looked_up_tables(case.trace, tables)
    passes = table_passes(case.trace, tables)
    made = at_or_below(case.trace.events, tables["event"])
    owned = case.free(pl.col("named_by").is_in(pl.concat([passes["event"], made]).implode()))
    ns = case.per_step(owned)
    if ns < DENSE_TABLE_LEAST * case.step_ns:
        return None
    passing = owned.join(passes.rename({"event": "named_by"}), on="named_by", maintain_order="left")
    gone = float((passing["ns"] * passing["share"]).sum()) / case.step_count / case.step_ns
    # At best, the gradients of the rows take no time beside the zeros around them.
    adding = owned.filter(pl.col("named_by").is_in(tables["event"].implode()))
    best = gone + case.per_step(adding) / case.step_ns
    left = Interval(1 - best, 1 - gone, 1 - gone * (1 - SPARSE_UPDATE_WORST))
    elements = int(tables["elements"].sum()) / max(1, len(case.lengths))
    detail = f"{case.of_step(ns)} {_why(tables, elements)}"
    return timed(case, RULE, owned, case.plan, detail, accounted=left)


def _in_programs(case: Case) -> Finding | None:
    """The passes of compiled programs over whole tables; what reads and scatters the rows of the batch stays."""
    tables = program_tables(case.trace, case.ops)
    if tables.is_empty():
        return None
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks else 0.0
    passes = whole_passes(case.ops, case.compute.kernels, tables, rate)
    mine = case.compute.kernels.filter(pl.col("event").is_in(passes.implode()))
    least, most = rows_left(tables, int(mine["time_ns"].sum()) / max(1, len(case.lengths)), rate)
    most = min(1.0, SPARSE_PROGRAM_UPDATE_WORST + most)
    chosen = passes.to_frame("event").select("event", least=pl.lit(min(least, most)), most=pl.lit(most))
    return of_kernels(case, RULE, chosen, _why(tables, int(tables["elements"].sum())), DENSE_TABLE_LEAST)


def _why(tables: pl.DataFrame, elements: float) -> str:
    share = float(tables["touched"].sum()) / float(tables["rows"].sum())
    return (
        f"is spent on gradients and updates of whole embedding tables ({size(PARAMETER_BYTES * elements)}), of which a batch "
        f"touches {percent(share, 2)} of the rows."
    )


def _by_optimizer(case: Case, tables: pl.DataFrame) -> Finding | None:
    """The gradients and the optimizer's passes of PyTorch."""
    elements = int(tables["elements"].sum()) / max(1, len(case.lengths))
    updates, made = _optimizer_kernels(case), _below(case, tables["event"])
    left = 1 - min(1.0, elements / max(elements, _parameters(case, updates)))
    if left > MAJORITY:
        return None  # in a language model the other weights cost more, and the head is dense anyway
    update = _sparse_update(case, updates["event"])
    least, most = _rows_of_batch(case, tables, updates, update)
    chosen = pl.concat(
        [
            updates.select("event", least=pl.lit(min(1.0, left + least)), most=pl.lit(min(1.0, left + most))),
            made.to_frame("event").select("event", least=pl.lit(0.0), most=pl.lit(0.0)),
        ]
    )
    slices = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(chosen["event"].implode()))
    ns = case.per_step(slices)
    if ns < DENSE_TABLE_LEAST * case.step_ns:
        return None
    shorter, launches = shorten_kernels(case, chosen), pl.lit(_launches_left(case, updates["event"], left))
    host_ns = _host_of_update(case, tables, update)
    smallest, largest = (
        _with_sparse_update(plan.with_host(launches < 1, launches), made, update, host_ns)
        for plan in (shorter.smallest, shorter.largest)
    )
    # At worst the launches that sort the rows for a dense gradient move to the update that merges them.
    change = Change(smallest, _without_sorting(case, largest, tables, made))
    detail = f"{case.of_step(ns)} {_why(tables, elements)}"
    return timed(case, RULE, slices, change, detail, spread=_spread_of(case, change))


def _spread_of(case: Case, change: Change) -> Spread | None:
    """Where so little is left for the device that the host decides, gains differ as those of hosts do, but for what a sparse update costs it."""
    plan = change.largest
    return OF_UPDATES if case.work_ns(plan) < DECIDED_BY_DEVICE * plan.step_ns() else None


@dataclass(frozen=True)
class _SparseUpdate:
    """What the sparse counterpart of an optimizer needs for a table.

    `host_ns`: more than the dense one, whatever the size. In bytes that the memory moves in the same time: for each row of
    the batch, to sort them and to merge those that repeat, and for each element of these. Only those that merge ask the device
    how many rows are left, and wait for the answer.
    """

    host_ns: int
    row_bytes: float
    element_bytes: float
    merges: bool = True


_ADAGRAD = _SparseUpdate(SPARSE_ADAGRAD_HOST_NS, SPARSE_ROW_BYTES, SPARSE_ADAGRAD_ELEMENT_BYTES)
_ADAM = _SparseUpdate(SPARSE_ADAM_HOST_NS, SPARSE_ROW_BYTES, SPARSE_ADAM_ELEMENT_BYTES)
_SGD = _SparseUpdate(SPARSE_SGD_HOST_NS, 0.0, SPARSE_ADAGRAD_ELEMENT_BYTES, merges=False)


def _sparse_update(case: Case, updates: pl.Series) -> _SparseUpdate:
    """That of the optimizer that most of the updates' time is in."""
    events = case.trace.events
    names = events["name"].cast(pl.String)
    kernels = case.trace.kernels.drop_nulls("op").filter(pl.col("event").is_in(updates.implode()))
    steps = ancestors(events, names.str.starts_with(_STEP)).gather(kernels["op"])
    times = pl.DataFrame({"name": names.gather(steps), "ns": events["dur_ns"].gather(kernels["event"])})
    longest = times.drop_nulls().group_by("name").agg(pl.col("ns").sum()).sort("ns", "name")["name"].to_list()
    name = longest[-1].removeprefix(_STEP) if longest else ""
    return _ADAM if "Adam" in name else _SGD if name.startswith("SGD") else _ADAGRAD


def _rows_of_batch(
    case: Case, tables: pl.DataFrame, updates: pl.DataFrame, update: _SparseUpdate
) -> tuple[float, float]:
    """What the update of the batch's rows takes, as a share of the updates: if all rows are one, and if all differ."""
    ns = int(updates["time_ns"].sum())
    if case.peaks is None or not ns:
        return 0.0, SPARSE_UPDATE_WORST
    rate = case.peaks.bytes_per_s / 1e9
    rows = update.row_bytes * float(tables["touched"].sum())
    elements = float((tables["touched"] * tables["elements"] / tables["rows"]).sum())
    return rows / rate / ns, (rows + update.element_bytes * elements) / rate / ns


def _host_of_update(case: Case, tables: pl.DataFrame, update: _SparseUpdate) -> int:
    """What a step of the host takes more: it dispatches more ops, and waits while the device sorts the rows."""
    sorting = 0.0
    if update.merges and case.peaks is not None:
        sorting = SPARSE_SORT_BYTES * float(tables["touched"].sum()) / (case.peaks.bytes_per_s / 1e9)
    return round((update.host_ns * len(tables) + sorting) / max(1, len(case.lengths)))


def _with_sparse_update(plan: Plan, made: pl.Series, update: _SparseUpdate, host_ns: int) -> Plan:
    """The host dispatches the sparse updates once the gradients are there, and waits for these where it asks for a number of rows."""
    mine = plan.items.filter(pl.col("event").is_in(made.implode()))
    ends = pl.col("item").is_in(mine.group_by("step").agg(pl.col("item").max())["item"].implode())
    kind = native.WAIT if update.merges else native.WORK
    items = plan.items.with_columns(
        added_ns=pl.when(ends).then(host_ns).otherwise("added_ns").cast(pl.Int64),
        kind=pl.when(ends).then(kind).otherwise("kind").cast(pl.UInt8),
    )
    return replace(plan, items=items)


def _without_sorting(case: Case, plan: Plan, tables: pl.DataFrame, made: pl.Series) -> Plan:
    """The dense gradient of many rows sorts them, with dozens of calls; the costs of an update were measured against one of few rows."""
    left = min(1.0, FEW_ROWS_GRADIENT_KERNELS * len(tables) / max(1, len(made)))
    inside = at_or_below(case.trace.events, tables["event"])
    return plan.with_host(pl.col("event").is_in(inside.implode()), left)


def _launches_left(case: Case, updates: pl.Series, left: float) -> pl.Series:
    """For each row of the plan's host time what is left of it.

    An op of the optimizer that goes through a whole table launches one kernel for each of its pieces; for a few rows it launches one.
    """
    events, kernels = case.trace.events, case.trace.kernels.drop_nulls("op")
    mine = kernels.filter(pl.col("event").is_in(updates.implode()))
    counts = mine.group_by("op").agg(count=pl.len())
    shares = counts.select("op", share=pl.max_horizontal(1.0, left * pl.col("count")) / pl.col("count"))
    of_op = pl.repeat(None, len(events), dtype=pl.Float64, eager=True).scatter(shares["op"], shares["share"])
    around = of_op.gather(ancestors(events, of_op.is_not_null()))
    share = pl.select(pl.coalesce(of_op, around, 1.0)).to_series()
    return share.gather(case.plan.host["event"]).fill_null(1.0)


def _sparse_tables(case: Case) -> pl.DataFrame:
    """event, rows, touched, elements of the gradients that hold many more rows than the batch has."""
    names = case.trace.events["name"].gather(case.trace.ops["event"]).cast(pl.String)
    ops = case.trace.ops.filter(names == _BACKWARD).select("event", "shapes", "concrete_inputs").drop_nulls()
    inside = ops.filter(case.trace.events["step"].gather(ops["event"]).is_not_null())
    found = [
        (event, *sizes)
        for event, shapes, inputs in inside.cast(
            {"shapes": pl.String, "concrete_inputs": pl.String}
        ).iter_rows()
        if (sizes := _sizes(shapes, inputs)) is not None
    ]
    schema = {"event": pl.UInt32, "rows": pl.Int64, "touched": pl.Int64, "elements": pl.Int64}
    table = pl.DataFrame(found, schema=schema, orient="row")
    return table.filter(pl.col("touched") < FEW_ROWS_OF_TABLE * pl.col("rows"))


def _sizes(shapes: str, inputs: str) -> tuple[int, int, int] | None:
    """Rows of the table, rows that the batch has at most, and elements of the table."""
    try:
        gradient, indices = json.loads(shapes)[:2]
        rows = int(json.loads(inputs)[2])
        return rows, math.prod(indices), rows * gradient[-1]
    except (ValueError, TypeError, IndexError):
        return None


def _optimizer_kernels(case: Case) -> pl.DataFrame:
    return case.compute.kernels.filter(
        pl.col("class") == "optimizer", pl.col("device").eq_missing(case.device)
    )


def _parameters(case: Case, updates: pl.DataFrame) -> float:
    """How many parameters the optimizer updates: by the lightest of its passes over all of them."""
    passes = updates.filter(pl.col("bytes") > 0).group_by("op").agg(pl.col("bytes").sum())
    heavy = passes.filter(pl.col("bytes") > LIGHT_PASS * pl.col("bytes").max())
    tensors = (
        pl.when(pl.col("op").str.contains("_fused_adam"))
        .then(FUSED_ADAM_TENSORS)
        .when(pl.col("op").str.contains("_fused_"))
        .then(FUSED_MOMENTUM_TENSORS)
        .otherwise(LIGHTEST_PASS_TENSORS)
    )
    lightest = take_smallest(heavy.select(pl.col("bytes") / tensors).to_series())
    return lightest / PARAMETER_BYTES / max(1, len(case.lengths))


def _below(case: Case, ops: pl.Series) -> pl.Series:
    """The kernels that these ops launch, however deep."""
    inside = at_or_below(case.trace.events, ops)
    found: pl.Series = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    return found


RULE: Rule[Case] = Rule(
    code="dense-embedding-gradient",
    title="Whole embedding tables are updated for a few rows",
    turn=118,
    turn_without_device=107,
    page="kernels",
    owns="kernels of the optimizer and of dense embedding gradients, if tables are most of the parameters and a batch touches less than a tenth of their rows; from 20 % of the step. In a compiled program: all kernels that pass over an array of the table's size, except those too short to read all of it, such as lookups and scatters of rows. Without a device: ops of gradients, the optimizer and zero_grad whose shapes are those of a table that the model only looks rows up in",
    change="their gradients take no time, and the optimizer skips the tables and launches one kernel where it launched one for each piece of them. Instead it sorts and merges the rows of the batch and updates these (as measured for Adagrad, SparseAdam and SGD: at best all rows are one, at worst all differ), for which the host waits for the device once and dispatches 0.04 to 1 ms more for each table. At best the host no longer dispatches what sorts the rows for the dense gradient. In a compiled program, at most 4 % of the passes over whole tables remain, and four times what the device's memory needs to read the rows of the batch and add them to the table; with an optimizer that keeps a state for each weight, to update that as well, and at least to sort the rows. Without a device, the passes over whole tables take no time, or a tenth of it at worst",
    fix={
        "pytorch": "Update only the rows of the batch: nn.Embedding(…, sparse=True) with torch.optim.SparseAdam (or SGD, Adagrad) for the tables, and the usual optimizer for the rest. Rows that a batch lacks then keep their moments: results change a little.",
        "jax": "Update only the rows of the batch: take the gradient of the gathered rows, table[ids], instead of the table, and write the new rows with table.at[ids].set(…) (jnp.unique with a fixed size where ids repeat).",
        ANY: "Use sparse gradients for embedding tables, so that only the rows of the batch are updated.",
    },
    find=find,
)
