"""The input pipeline: how much of the step it took, how much of that the device waited for, and which stage is slow.

`share` is the time in which a host thread that feeds the loop was inside the loader, over the steps' time.
`exposed_share` is the part `input` of the account: the device had nothing else to do. A stage is an event name inside
the loader; its self time leaves out the stages inside it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.account import Account
from stepscope.analysis.steps import Steps
from stepscope.native import intervals, order
from stepscope.trace.columns import buffer, series
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

HIGH, MODERATE = 0.20, 0.05
STAGES = 30
WORKER = "worker: "
_WORKERS = "_MultiProcessingDataLoaderIter"
# The first rule that matches decides.
_KINDS: tuple[tuple[str, str], ...] = (
    ("wait", r"(?i)_try_get_data|_get_data$|queues?\.py.*: get$|multiprocessing.*(recv|poll|wait)|::Prefetch$|selectors|select\.(e?poll|select)|acquire"),
    ("copy", r"(?i)pin_memory|Memcpy|HtoD|CopyHostToDevice|aten::to$|aten::_to_copy|aten::copy_|device_put|TransferTo"),
    ("batch", r"(?i)collate|aten::stack|aten::cat$|::(Padded)?Batch(V2)?$|::ParallelBatch"),
    ("read", r"(?i)TFRecord|TextLine|FixedLengthRecord|RecordIO|ArrayRecord|::FlatMap|: (open|read|load|imread|loadtxt|readline)s?$|PIL/.*Image.*open|<built-in .*(read|open)"),
    ("preprocess", r"(?i)__getitem__|transform|decode|augment|resize|crop|normalize|::(Parallel)?Map|::Filter|Parse|tokeniz|preprocess"),
)  # fmt: skip


@dataclass(frozen=True)
class InputPipeline:
    """Named as in the report; `stages`: name, kind, total_ns, self_ns, calls."""

    share: float
    exposed_share: float
    stages: pl.DataFrame
    verdict: str


def input_pipeline(trace: Trace, steps: Steps, account: Account | None) -> InputPipeline:
    """The loader's share and its stages, whatever loader it was."""
    inside = _inside(trace)
    step_ns = int((steps.host["end_ns"] - steps.host["start_ns"]).sum()) if len(steps.host) else 0
    share = min(1.0, _loop_time(trace, inside, steps) / step_ns) if step_ns else 0.0
    exposed = _exposed(account)
    stages = _with_workers(_stages(trace, inside), trace)
    return InputPipeline(round(share, 6), round(exposed, 6), stages, _verdict(share, exposed, stages))


def _inside(trace: Trace) -> pl.DataFrame:
    """Host events of the loader: those with its role and all below them; `root` for the outermost."""
    events = trace.events
    is_input = (events["role"] == "input").fill_null(False)
    above = ancestors(events, is_input)
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    found = events.select("id", "track", "name", "kind", "start_ns", "dur_ns", "parent", "step").with_columns(
        root=is_input & above.is_null(), within=is_input | above.is_not_null()
    )
    counted = pl.col("within") & pl.col("track").is_in(host.implode()) & (pl.col("dur_ns") > 0)
    return found.filter(counted)


def _loop_time(trace: Trace, inside: pl.DataFrame, steps: Steps) -> int:
    """Time in the loader on the threads that mark the steps, inside steps."""
    mine = inside.filter(pl.col("root"), pl.col("track").is_in(steps.host["track"].unique().implode())).sort(
        "start_ns"
    )
    if mine.is_empty():
        return 0
    left = intervals.union(buffer(mine["start_ns"]), buffer(mine["start_ns"] + mine["dur_ns"]))
    host = steps.host.sort("start_ns")
    right = intervals.union(buffer(host["start_ns"]), buffer(host["end_ns"]))
    return int(intervals.total(*intervals.intersect(*left, *right)))


def _exposed(account: Account | None) -> float:
    if account is None or account.slices.is_empty():
        return 0.0
    parts = account.parts
    total = int(parts["ns"].sum())
    return int(parts.filter(pl.col("part") == "input")["ns"].sum()) / total if total else 0.0


def _stages(trace: Trace, inside: pl.DataFrame) -> pl.DataFrame:
    events = trace.events
    own = array("q", bytes(8 * len(events)))
    intervals.self_times(buffer(events["parent"].fill_null(order.NONE)), buffer(events["dur_ns"]), own)
    self_ns = series("self", own, pl.Int64)
    rows = inside.with_columns(
        self_ns=self_ns.gather(inside["id"]), above=events["name"].gather(inside["parent"])
    )
    outer = (pl.col("above") != pl.col("name")).fill_null(True)
    name = pl.col("name").cast(pl.String)
    grouped = rows.group_by(name).agg(
        pl.col("dur_ns").filter(outer).sum().alias("total_ns"),
        pl.col("self_ns").sum(),
        pl.len().alias("calls"),
    )
    return (
        grouped.with_columns(kind=_kind(pl.col("name")))
        .sort(["self_ns", "name"], descending=[True, False])
        .head(STAGES)
        .select("name", "kind", "total_ns", "self_ns", "calls")
    )


def _with_workers(stages: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """What our own capture saw in the loader's worker processes: functions by sampling, so without a number of calls."""
    told = trace.info.capture.get("input")
    workers = told.get("workers", []) if isinstance(told, dict) else []
    rows = [
        (f"{WORKER}{stage['name']}", stage["total_ns"], stage["self_ns"], worker["batches"])
        for worker in workers
        for stage in worker.get("stages", [])
    ]
    if not rows:
        return stages
    found = pl.DataFrame(rows, schema=["name", "total_ns", "self_ns", "calls"], orient="row")
    found = found.group_by("name").agg(pl.col("total_ns", "self_ns", "calls").cast(pl.Int64).sum())
    found = found.with_columns(kind=_kind(pl.col("name"))).select(stages.columns).cast(stages.schema)
    return pl.concat([stages, found]).sort(["self_ns", "name"], descending=[True, False]).head(STAGES)


def _kind(name: pl.Expr) -> pl.Expr:
    kind: Any = pl.when(False).then(pl.lit(""))
    for label, pattern in _KINDS:
        kind = kind.when(name.str.contains(pattern)).then(pl.lit(label))
    found: pl.Expr = kind.otherwise(pl.lit("other"))
    return found


def _verdict(share: float, exposed: float, stages: pl.DataFrame) -> str:
    if stages.is_empty():
        return "No input pipeline was recorded."
    # Waiting for a worker is no reason: what the worker does is.
    at_work = stages.filter(pl.col("kind") != "wait")
    is_told = stages["name"].str.starts_with(WORKER).any()
    slowest = (at_work if is_told and len(at_work) else stages).row(0, named=True)
    worst = f"the slowest stage is {slowest['name']} ({slowest['kind']})"
    if stages["name"].str.contains(_WORKERS).any() and not is_told:
        worst += "; what the loader's worker processes did was not recorded"
    if exposed >= HIGH:
        return f"Input-bound: the device waits for data {exposed:.0%} of the time; {worst}."
    if exposed >= MODERATE:
        return f"Partly input-bound: the device waits for data {exposed:.0%} of the time; {worst}."
    if share >= MODERATE:
        return f"Not input-bound: the loader takes {share:.0%} of the step, but the device is busy meanwhile."
    return "Not input-bound."
