"""Rows are sorted as a whole, and only their first or last few entries are used."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import of_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.formulas.constants import ITEM_BYTES, PRECISION_BYTES
from stepscope.analysis.kernels.occupancy import multiprocessors
from stepscope.analysis.ops.sort_calls import sorts_that_keep_few
from stepscope.analysis.ops.sorts import KeptSort
from stepscope.analysis.xla.hlo_module import as_kernel, read_module
from stepscope.analysis.xla.ops import events_of_programs, programs_that_ran
from stepscope.analysis.xla.sorts import ProgramSort, program_sorts
from stepscope.registers.calibration.sorting import (
    HOST_TOP_K_BEST,
    HOST_TOP_K_FEW_BEST,
    HOST_TOP_K_FEW_WORST,
    HOST_TOP_K_WORST,
    HOST_XLA_TOP_K_BEST,
    HOST_XLA_TOP_K_WORST,
    TOP_K_BLOCKS,
    TOP_K_PASSES_BEST,
    TOP_K_PASSES_WORST,
    TOP_K_ROW_NS,
    TOP_K_SHORTEST_BEST_NS,
    TOP_K_SHORTEST_WORST_NS,
    XLA_TOP_K_MOST,
    XLA_TOP_K_ROW,
    XLA_TOP_K_SHARE,
)
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.registers.policy.useless_work import SORT_KEPT_FEW, SORT_LEFT_MOST
from stepscope.trace.scopes import ancestors

_XLA_SELECTS = ("fp32", "bf16")
_XLA_AXES = ("rows", "entries")  # of what it selects from
_WORK = {"group": pl.UInt32, "row": pl.Int64, "kept": pl.Int64, "best": pl.Float64, "worst": pl.Float64}
_ONE = {
    "pytorch": "Only one entry of a row is used: max, min, argmax or argmin give it in one pass.",
    "jax": "Only one entry of a row is used: jnp.max, jnp.min, jnp.argmax or jnp.argmin give it in one pass.",
    "tensorflow": "Only one entry of a row is used: tf.reduce_max, tf.reduce_min, tf.argmax or tf.argmin give it in one pass.",
}


def find(case: Case) -> Finding | None:
    """Sorts by the code of compiled programs, or by ops and what is cut out of their results."""
    if case.is_tpu:
        return None
    if case.runs_programs:
        return _found(case, _in_programs(case))
    return _found(case, _in_ops(case)) if case.trace.info.framework == "pytorch" else None


def _in_ops(case: Case) -> pl.DataFrame:
    """Columns of `_WORK` and event: on a device kernels, on a host ops and what they call."""
    found = sorts_that_keep_few(case.trace)
    rows = [
        (op, place, one.length, one.kept, *_of_sort(case, one))
        for place, one in enumerate(found)
        for op in one.ops
    ]
    table = pl.DataFrame(rows, schema={"op": pl.UInt32, **_WORK}, orient="row")
    if table.is_empty():
        return table.rename({"op": "event"})
    events = case.trace.events
    chosen = events["id"].is_in(table["op"].implode())
    around = ancestors(events, chosen)
    owners = pl.DataFrame(
        {
            "event": events["id"],
            "op": pl.select(pl.when(chosen).then(events["id"]).otherwise(around)).to_series(),
        }
    ).drop_nulls()
    inside = owners.cast({"op": pl.UInt32}).join(table, on="op").drop("op")
    if case.device is None:
        return inside
    launched = case.trace.kernels.select(kernel="event", event="op").drop_nulls()
    return launched.join(inside, on="event").drop("event").rename({"kernel": "event"})


def _of_sort(case: Case, one: KeptSort) -> tuple[float, float]:
    """What a top-k takes at best and at worst: of a host as a share of the sort, else in ns."""
    if case.device is None:
        few = one.kept <= SORT_KEPT_FEW * one.length + 1
        return (HOST_TOP_K_FEW_BEST, HOST_TOP_K_FEW_WORST) if few else (HOST_TOP_K_BEST, HOST_TOP_K_WORST)
    rows = math.prod(one.shape) // one.length
    pass_ns = _pass_ns(case, math.prod(one.shape) * ITEM_BYTES.get(one.dtype, ITEM_BYTES["float"]))
    turns = math.ceil(rows / (TOP_K_BLOCKS * _units(case)))
    worst = max(TOP_K_PASSES_WORST * pass_ns, turns * TOP_K_ROW_NS, TOP_K_SHORTEST_WORST_NS)
    return max(TOP_K_PASSES_BEST * pass_ns, TOP_K_SHORTEST_BEST_NS), worst


def _in_programs(case: Case) -> pl.DataFrame:
    """The same of the instructions of compiled programs; of programs of one name, what all of them have."""
    codes = sorted({(name, hlo) for name, _, hlo in programs_that_ran(case.trace)})
    programs = Counter(name for name, _ in codes)
    found = [
        (f"{name}/{written}", place, one.length, one.kept, *_of_program(case, one))
        for place, (name, one) in enumerate(
            (name, one) for name, hlo in codes for one in program_sorts(read_module(hlo))
        )
        if programs[name] == 1 and _is_selected(case, one)
        for instruction in sorted(one.names)
        for written in sorted({instruction, as_kernel(instruction)})
    ]
    table = pl.DataFrame(found, schema={"scope": pl.String, **_WORK}, orient="row")
    ops = case.trace.ops.select("event", pl.col("scope").cast(pl.String))
    work = ops.join(table.unique("scope", keep="first"), on="scope").drop("scope")
    if case.device is None or work.is_empty():
        return work
    events = events_of_programs(case.trace).filter(pl.col("device") == case.device)
    runs = pl.col("run").n_unique().over("group")
    return work.join(events.select("event", "run"), on="event").with_columns(
        best=pl.col("best") * runs, worst=pl.col("worst") * runs
    )


def _is_selected(case: Case, one: ProgramSort) -> bool:
    """Whether XLA has more for a top-k than a sort and a slice."""
    if case.device is None:
        return True
    fits = one.element in _XLA_SELECTS and one.rank <= len(_XLA_AXES)
    return fits and one.kept <= XLA_TOP_K_MOST and one.length >= XLA_TOP_K_ROW


def _of_program(case: Case, one: ProgramSort) -> tuple[float, float]:
    if case.device is None:
        return HOST_XLA_TOP_K_BEST, HOST_XLA_TOP_K_WORST
    pass_ns = _pass_ns(case, one.rows * one.length * PRECISION_BYTES.get(one.element, ITEM_BYTES["float"]))
    units = _units(case)
    alone = XLA_TOP_K_SHARE * pass_ns * math.ceil(one.rows / units) * units / one.rows
    worst = max(TOP_K_PASSES_WORST * pass_ns, alone, TOP_K_SHORTEST_WORST_NS)
    return max(TOP_K_PASSES_BEST * pass_ns, TOP_K_SHORTEST_BEST_NS), worst


def _pass_ns(case: Case, size: float) -> float:
    """How long the memory takes to read these bytes."""
    return size / case.peaks.bytes_per_s * 1e9 if case.peaks and case.peaks.bytes_per_s else math.inf


def _units(case: Case) -> int:
    known = (multiprocessors(device) for device in case.trace.info.devices)
    return next((count for count in known if count), 1)


def _found(case: Case, work: pl.DataFrame) -> Finding | None:
    """`work` has event and the columns of `_WORK`."""
    if work.is_empty():
        return None
    kept, row = work.sort("row", "kept").select("kept", "row").row(-1)
    why = f"is spent on sorting rows of {row:,} entries, of which {kept:,} at one end are used."
    evidence = {"row": row, "kept": kept}
    if case.device is None:
        found = _on_host(case, work, why, evidence)
    else:
        times = case.compute.kernels.select("event", "time_ns")
        whole = pl.col("time_ns").sum().over("group").clip(lower_bound=1)
        left = work.join(times, on="event").with_columns(
            least=(pl.col("best") / whole).clip(upper_bound=1.0),
            most=(pl.col("worst") / whole).clip(upper_bound=1.0),
        )
        left = left.filter((pl.col("least") * pl.col("most")).sqrt() <= SORT_LEFT_MOST)
        found = of_kernels(case, RULE, left.select("event", "least", "most"), why, evidence=evidence)
    if found is not None and int(work["kept"].max() or 0) == 1:  # type: ignore[arg-type]
        one = _ONE.get(case.trace.info.framework or "", _ONE["pytorch"])
        return msgspec.structs.replace(found, fix=f"{one} {found.fix}")
    return found


def _on_host(case: Case, work: pl.DataFrame, why: str, evidence: dict[str, int]) -> Finding | None:
    """Ops that compute by themselves: of each, `best` and `worst` are what is left."""
    owned = case.free(pl.col("named_by").is_in(work["event"].implode()))
    ns = case.per_step(owned)
    if owned.is_empty() or ns < WORTH_A_FINDING * case.step_ns:
        return None
    shares = work.select("best", "worst", named_by="event").unique("named_by")
    mine = owned.join(shares, on="named_by", maintain_order="left")
    best, mid, worst = (
        mine.select((pl.col("ns") * (1 - left)).sum()).item() / case.step_count / case.step_ns
        for left in (pl.col("best"), (pl.col("best") * pl.col("worst")).sqrt(), pl.col("worst"))
    )
    left = Interval(1 - best, 1 - mid, 1 - worst)
    return timed(case, RULE, owned, case.plan, f"{case.of_step(ns)} {why}", evidence, accounted=left)


RULE: Rule[Case] = Rule(
    code="full-sort",
    title="Whole rows are sorted for a few of their entries",
    turn=186,
    turn_without_device=91,
    page="ops",
    owns="kernels (without a device, ops) of sorts and argsorts of rows of 256 entries or more, of whose result only slices at one end are read, at most an eighth of a row; with the negation before and the reversal behind them, and in compiled programs what makes their operands. In JAX and TensorFlow on a GPU only up to 16 entries of rows of 1024 or more, of arrays with one or two dimensions in fp32 or bf16: for others XLA may sort anyway",
    change="a top-k takes 3 to 20 passes over the keys at memory bandwidth, and at least 10 to 60 µs; at worst also 30 µs for every two rows that a multiprocessor selects from at once, in compiled programs the time of one row on each (estimates: none was measured on a GPU). If the middle of both is more than 60 % of the sort, nothing is promised. Without a device, 3 to 33 % of the sort's time remains in PyTorch, by how much of a row is kept, and 0.1 to 10 % in compiled programs",
    fix={
        "pytorch": "Select the largest or smallest entries only: scores.topk(k, dim=-1) (largest=False for the smallest) returns values and indices in order, in place of sort or argsort and [..., :k]; sorted=False if the order does not matter.",
        "jax": "Select the largest entries only: values, indices = jax.lax.top_k(scores, k), in place of jnp.argsort(-scores)[..., :k]; of -distances for the smallest. jax.lax.approx_max_k is faster still on TPUs.",
        "tensorflow": "Select the largest entries only: tf.math.top_k(scores, k) returns values and indices in order, in place of tf.sort or tf.argsort and [..., :k]; of -distances for the smallest.",
        ANY: "Select the largest or smallest entries only, with a top-k in place of a sort.",
    },
    find=find,
)
