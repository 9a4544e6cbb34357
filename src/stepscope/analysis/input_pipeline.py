"""The input pipeline: how much of the step it took, how much of that the device waited for, and which stage is slow.

`share` is the time in which a host thread that feeds the loop was inside the loader, over the steps' time.
`exposed_share` is the part `input` of the account: the device had nothing else to do. The verdict looks at the usual steps, as
the finding `input-bound` does: a step that compiles for a minute says nothing of the loader. A stage is an event name
inside the loader; its self time leaves out the stages inside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.host.activity import self_time
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.usual import outliers, usual
from stepscope.lazy import dataclass
from stepscope.names import short_name
from stepscope.native.spans.sets import intersect, total, union
from stepscope.registers.policy.findings import INPUT_HIGH, INPUT_MODERATE
from stepscope.registers.policy.tables import INPUT_STAGES
from stepscope.trace.columns import buffer, repeated
from stepscope.trace.lookup import by_name, distinct
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace
from stepscope.units import percent

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

_OTHER = "other"
# By number: millions of events have one of a few kinds.
_LABELS = (*(label for label, _ in _KINDS), _OTHER)
_WORK = [_LABELS.index(label) for label in ("read", "preprocess", "batch")]


@dataclass(frozen=True)
class Waited:
    """Time the device waited for data, of all time; and the same of the usual steps."""

    input_ns: int = 0
    all_ns: int = 0
    usual_input_ns: int = 0
    usual_ns: int = 0

    @property
    def share(self) -> float:
        """Of all steps: the part `input` of the account."""
        return self.input_ns / self.all_ns if self.all_ns else 0.0

    @property
    def usual_share(self) -> float:
        """Of the usual steps."""
        return self.usual_input_ns / self.usual_ns if self.usual_ns else 0.0


@dataclass(frozen=True)
class InputPipeline:
    """Named as in the report; `stages`: name, kind, total_ns, self_ns, calls."""

    loader_ns: int
    step_ns: int
    waited: Waited
    stages: pl.DataFrame
    verdict: str

    @property
    def share(self) -> float:
        """Of the time of the steps on the host, how much was in the loader."""
        return round(min(1.0, self.loader_ns / self.step_ns), 6) if self.step_ns else 0.0

    @property
    def exposed_share(self) -> float:
        """Of the time of the steps, how long the device waited."""
        return round(self.waited.share, 6)


def input_pipeline(trace: Trace, steps: Steps, account: Account | None) -> InputPipeline:
    """The loader's share and its stages, whatever loader it was; `account` is that of the device that counts."""
    inside = _inside(trace, account)
    step_ns = int((steps.host["end_ns"] - steps.host["start_ns"]).sum()) if len(steps.host) else 0
    waited = _waited(account)
    stages = _with_workers(_stages(trace, inside), trace)
    found = InputPipeline(_loop_time(trace, inside, steps), step_ns, waited, stages, "")
    has_device = bool((trace.tracks["what"] == "device").any())
    return replace(found, verdict=_verdict(found.share, waited, stages, has_device))


def _inside(trace: Trace, account: Account | None) -> pl.DataFrame:
    """Host events of the loader and all below them; `root` for the outermost."""
    events = trace.events
    is_input = _is_input(trace, account)
    above = ancestors(events, is_input)
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    found = events.select("id", "track", "name", "kind", "start_ns", "dur_ns", "parent", "step").with_columns(
        root=is_input & above.is_null(), within=is_input | above.is_not_null()
    )
    counted = pl.col("within") & pl.col("track").is_in(host.implode()) & (pl.col("dur_ns") > 0)
    return found.filter(counted)


def _is_input(trace: Trace, account: Account | None) -> pl.Series:
    """Events with the loader's role; where none has it, those that the account charges input to, such as an annotation."""
    by_role = (trace.events["role"] == "input").fill_null(False)
    if by_role.any() or account is None:
        return by_role
    named = account.slices.filter(pl.col("part") == "input")["named_by"].drop_nulls().unique()
    return by_role.scatter(named, True) if len(named) else by_role


def _loop_time(trace: Trace, inside: pl.DataFrame, steps: Steps) -> int:
    """Time in the loader on the threads that mark the steps, inside steps."""
    mine = inside.filter(pl.col("root"), pl.col("track").is_in(steps.host["track"].unique().implode())).sort(
        "start_ns"
    )
    if mine.is_empty():
        return 0
    left = union(buffer(mine["start_ns"]), buffer(mine["start_ns"] + mine["dur_ns"]))
    host = steps.host.sort("start_ns")
    right = union(buffer(host["start_ns"]), buffer(host["end_ns"]))
    return int(total(*intersect(*left, *right)))


def _waited(account: Account | None) -> Waited:
    if account is None or account.slices.is_empty():
        return Waited()
    parts = account.parts
    slow = outliers(parts.group_by("step").agg(pl.col("ns").sum()))
    return Waited(*_input_and_all(parts), *_input_and_all(usual(parts, slow)))


def _input_and_all(parts: pl.DataFrame) -> tuple[int, int]:
    return int(parts.filter(pl.col("part") == "input")["ns"].sum()), int(parts["ns"].sum())


def stage_events(trace: Trace, account: Account | None) -> pl.DataFrame:
    """The events that the stages are made of: id, name, self_ns and more."""
    return _with_self_time(trace, _inside(trace, account))


def _with_self_time(trace: Trace, inside: pl.DataFrame) -> pl.DataFrame:
    return inside.with_columns(self_ns=self_time(trace.events).gather(inside["id"]))


def _stages(trace: Trace, inside: pl.DataFrame) -> pl.DataFrame:
    events = trace.events
    rows = _with_self_time(trace, inside).with_columns(above=events["name"].gather(inside["parent"]))
    outer = (pl.col("above") != pl.col("name")).fill_null(True)
    kinds = _kinds(events, inside)
    rows = rows.with_columns(kind=pl.Series(_LABELS).gather(kinds.gather(rows["id"]))).sort(
        "self_ns", descending=True
    )
    name = pl.col("name").cast(pl.String)
    grouped = rows.group_by(name, maintain_order=True).agg(
        pl.col("kind").first(),
        pl.col("dur_ns").filter(outer).sum().alias("total_ns"),
        pl.col("self_ns").sum(),
        pl.len().alias("calls"),
    )
    return (
        grouped.sort(["self_ns", "name"], descending=[True, False])
        .head(INPUT_STAGES)
        .select("name", "kind", "total_ns", "self_ns", "calls")
    )


def _kinds(events: pl.DataFrame, inside: pl.DataFrame) -> pl.Series:
    """By event, the number of its kind: by its name, else that of the work it is a piece of, such as an op inside `__getitem__`."""
    known = distinct(inside["name"])
    labels = pl.select(_kind(pl.lit(known.cast(pl.String)))).to_series()
    codes = labels.replace_strict(_LABELS, range(len(_LABELS)), return_dtype=pl.UInt8)
    of_event = repeated(None, len(events), pl.UInt8).scatter(
        inside["id"], by_name(inside["name"], known, codes)
    )
    around = ancestors(events, of_event.is_in(_WORK).fill_null(False))
    inherited = of_event.gather(around)
    is_other = of_event == _LABELS.index(_OTHER)
    return pl.select(pl.when(is_other).then(pl.coalesce(inherited, of_event)).otherwise(of_event)).to_series()


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
    return pl.concat([stages, found]).sort(["self_ns", "name"], descending=[True, False]).head(INPUT_STAGES)


def _kind(name: pl.Expr) -> pl.Expr:
    kind: Any = pl.when(False).then(pl.lit(""))
    for label, pattern in _KINDS:
        kind = kind.when(name.str.contains(pattern)).then(pl.lit(label))
    found: pl.Expr = kind.otherwise(pl.lit(_OTHER))
    return found


def _verdict(share: float, waited: Waited, stages: pl.DataFrame, has_device: bool) -> str:
    exposed = waited.usual_share
    if stages.is_empty() and exposed < INPUT_MODERATE:
        return "No input pipeline was recorded."
    who = "the device" if has_device else "the step"
    waits = f"{who} waits for data {percent(exposed)} of the time{_beside_all(waited)}"
    worst = f"; {_slowest(stages)}" if len(stages) else ""
    if exposed >= INPUT_HIGH:
        return f"Input-bound: {waits}{worst}."
    if exposed >= INPUT_MODERATE:
        return f"Partly input-bound: {waits}{worst}."
    if waited.share >= INPUT_MODERATE:
        return f"Not input-bound, but in a few slow steps: {waits}."
    if share >= INPUT_MODERATE:
        return f"Not input-bound: the loader takes {percent(share)} of the step, but {who} waits for it only {percent(exposed)}."
    return "Not input-bound."


def _beside_all(waited: Waited) -> str:
    """What slow steps make of the share, where that is another figure."""
    if round(waited.usual_share, 2) == round(waited.share, 2):
        return ""
    return f" in usual steps ({percent(waited.share)} of all, with the slow ones)"


def _slowest(stages: pl.DataFrame) -> str:
    # A wait is not what is slow: what is waited for is, or the code that asked for it.
    at_work = stages.filter(pl.col("kind") != "wait")
    is_recorded = stages["name"].str.starts_with(WORKER).any()
    slowest = (at_work if len(at_work) else stages).row(0, named=True)
    kind = "" if slowest["kind"] == "other" else f" ({slowest['kind']})"
    worst = f"the slowest stage is {short_name(slowest['name'])}{kind}"
    if stages["name"].str.contains(_WORKERS).any() and not is_recorded:
        worst += "; what the loader's worker processes did was not recorded"
    return worst
