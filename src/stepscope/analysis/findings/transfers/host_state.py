"""State that the host keeps and updates in every step from tensors of the device: an average of the weights, statistics, counts.

Many tensors, or a large one, go to the host, and ops of the framework take them there, which launch nothing: `ema.lerp_(p.cpu(), …)`.
An optimizer on the host is not meant, nor what comes back to the device: other rules know what their fixes leave.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.analysis.findings.transfers.host_ops import computed_on_host
from stepscope.analysis.formulas.constants import ITEM_BYTES
from stepscope.analysis.repeats.op_call import Op
from stepscope.lazy import dataclass
from stepscope.registers.calibration.launches import STAGED_COPY_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.device_findings import DETOUR_BYTES
from stepscope.registers.policy.findings import ARRAYS_OF_A_BATCH, MAJORITY, WORTH_A_FINDING
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors

_IDLE = ("copy", "sync", "dispatch", "python", "unexplained", "device_gap", "allocator")
_IN_PLACE = r"[a-z0-9]_$"
_OF_LISTS = r"^aten::_foreach_"
_COPIES = r"^aten::(to|_to_copy|copy_|clone|contiguous)$"  # a snapshot is not computed on


@dataclass(frozen=True)
class HostState:
    """Copies to the host, what they own together with the ops that take them, and the step without both."""

    copies: pl.DataFrame  # event, bytes
    ops: pl.Series  # events
    owned: pl.DataFrame
    changed: Change


def host_state(case: Case, in_optimizer: pl.Series) -> HostState | None:
    """None where the host's ops take few small tensors, or none (`in_optimizer`: by event)."""
    if case.device is None or case.runs_programs:
        return None
    runs = _runs(case)
    ops = _taking_ops(case, runs) if len(runs) else None
    if ops is None or ops.is_empty():
        return None
    runs = _updating(case, runs, ops)
    ops = ops.filter(pl.col("run").is_in(runs["run"].implode()))
    updates = in_optimizer.gather(ops["event"])
    if int(updates.sum()) > MAJORITY * len(updates) or not _is_state(case, runs, ops):
        return None
    owned = _slices_of(case, runs, ops)
    if case.per_step(owned) < WORTH_A_FINDING * case.step_ns or case.is_of_one_step(owned):
        return None
    return HostState(
        runs.select("event", "bytes"), ops["event"].unique(), owned, _on_device(case, runs, ops["row"])
    )


def _runs(case: Case) -> pl.DataFrame:
    """Copies to the host that nothing else of the device is launched between: run, item, event, bytes, step; first, and the next work."""
    work = copy_items(case).with_columns(
        pl.col("item").cast(pl.Int64), away=(pl.col("direction") == "DtoH").fill_null(False)
    )
    work = work.with_columns(run=pl.col("away").rle_id())
    starts = work.group_by("run", maintain_order=True).agg(first=pl.col("item").first())
    starts = starts.with_columns(next=pl.col("first").shift(-1).fill_null(len(case.plan.items)))
    found = work.filter("away").join(starts, on="run", how="left", maintain_order="left")
    return found.select("run", "item", "event", "bytes", "step", "first", "next")


def _taking_ops(case: Case, runs: pl.DataFrame) -> pl.DataFrame:
    """row (of the plan's host work), event, run: ops that the host computes between the first copy of a run and the next other launch."""
    host = case.plan.host.select("item", "event", row=pl.int_range(pl.len()))
    is_computed = computed_on_host(case.trace) & ~is_named(case.trace.events, _COPIES)
    around = ancestors(case.trace.events, is_computed)
    op = pl.select(pl.when(is_computed).then(case.trace.events["id"]).otherwise(around)).to_series()
    rows = host.with_columns(pl.col("item").cast(pl.Int64), event=op.gather(host["event"])).drop_nulls()
    spans = runs.unique("run", keep="first", maintain_order=True).select("run", "first", "next")
    found = rows.join_asof(spans, left_on="item", right_on="first", allow_exact_matches=False)
    return found.filter(pl.col("item") <= pl.col("next")).select("row", "event", "run")


def _updating(case: Case, runs: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """The runs of which the ops take most of the bytes: by the sizes of their inputs, or where these are not known by their number."""
    by_run = _inputs_of(case, ops)
    taken = runs.join(by_run, on="run").with_columns(
        is_taken=pl.when(pl.col("sizes").list.len() > 0)
        .then(pl.col("bytes").is_in("sizes"))
        .otherwise(pl.col("of_lists") | (pl.col("ops") > MAJORITY * pl.len().over("run")))
    )
    of_run = taken.with_columns(
        bytes_taken=pl.col("bytes").filter("is_taken").sum().over("run"),
        all=pl.col("bytes").sum().over("run"),
    )
    return of_run.filter(pl.col("bytes_taken") > MAJORITY * pl.col("all")).select(runs.columns)


def _inputs_of(case: Case, ops: pl.DataFrame) -> pl.DataFrame:
    """run, ops (how many), of_lists, and the sizes in bytes of all tensors that they take."""
    calls = ops.unique(("run", "event"), maintain_order=True)
    known = case.trace.ops.filter(pl.col("event").is_in(calls["event"].implode()))
    kinds = known.select("event", pl.col("shapes", "dtypes").cast(pl.String)).unique("event")
    texts = kinds.select("shapes", "dtypes").unique()
    sized = texts.with_columns(
        sizes=pl.Series([_sizes(*row) for row in texts.iter_rows()], dtype=pl.List(pl.Int64))
    )
    kinds = kinds.join(sized, on=("shapes", "dtypes"), how="left", nulls_equal=True)
    names = case.trace.events["name"].gather(calls["event"]).cast(pl.String)
    calls = calls.with_columns(of_lists=names.str.contains(_OF_LISTS))
    return (
        calls.join(kinds, on="event", how="left")
        .group_by("run")
        .agg(
            pl.len().alias("ops"),
            pl.col("of_lists").any(),
            sizes=pl.col("sizes").explode().drop_nulls().unique(),
        )
    )


def _sizes(shapes: str | None, dtypes: str | None) -> list[int]:
    """The bytes of the tensors that an op takes; in lists, whose types are not recorded, of single precision."""
    kinds = dict(enumerate(Op("", None, None, dtypes).numbers))  # the same list of texts
    of_list = ITEM_BYTES["float"]
    tensors = Op("", shapes, dtypes, None).tensors
    return sorted({each.size * ITEM_BYTES.get(kinds.get(each.place, ""), of_list) for each in tensors})


def _is_state(case: Case, runs: pl.DataFrame, ops: pl.DataFrame) -> bool:
    """Whether most steps copy many tensors, or large ones for ops in place, none of which come back."""
    steps = len(case.lengths)
    if runs["step"].n_unique() <= MAJORITY * steps or int(runs["bytes"].sum()) < DETOUR_BYTES * steps:
        return False
    is_many = len(runs) > ARRAYS_OF_A_BATCH * steps
    names = case.trace.events["name"].gather(ops["event"]).cast(pl.String)
    if not is_many and not names.str.contains(_IN_PLACE).any():
        return False
    return not _come_back(case, runs)


def _come_back(case: Case, runs: pl.DataFrame) -> bool:
    """Whether most of the bytes are sent to the device in the same step, in arrays of the same size."""
    sent = copy_items(case).filter(direction="HtoD").select("step", "bytes").unique()
    back = runs.join(sent, on=("step", "bytes"), how="semi")
    return int(back["bytes"].sum()) > MAJORITY * int(runs["bytes"].sum())


def _slices_of(case: Case, runs: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Time in which the device does nothing but copy, from the first copy of a run to the end of the last op."""
    events = case.trace.events

    copied, computed = (
        rows.select(
            "run", end_ns=events["start_ns"].gather(rows["event"]) + events["dur_ns"].gather(rows["event"])
        )
        for rows in (runs, ops)
    )
    ends = pl.concat([copied, computed]).group_by("run").agg(pl.col("end_ns").max())
    firsts = runs.unique("run", keep="first", maintain_order=True)
    starts = firsts.select("run", start_ns=events["start_ns"].gather(firsts["event"]))
    both = starts.join(ends, on="run", maintain_order="left")
    free = case.free(pl.col("part").is_in(_IDLE))
    return free.filter(within(free["start_ns"], both["start_ns"], both["end_ns"]))


def _on_device(case: Case, runs: pl.DataFrame, rows: pl.Series) -> Change:
    """Nothing is copied, waited for or computed on the host; at most, the loop that did it goes as well, as with ops on lists."""
    items, host = case.plan.items["item"].cast(pl.Int64), case.plan.host["item"].cast(pl.Int64)
    mine = pl.col("event").is_in(runs["event"].implode())
    spans = runs.unique("run", keep="first", maintain_order=True)
    calls = pl.col("item").is_in(runs["item"].cast(pl.UInt32).implode())
    copying = calls & pl.col("cause").is_in(["dispatch", "sync", "copy"])
    is_taking = pl.repeat(False, len(host), dtype=pl.Boolean, eager=True).scatter(rows, True)
    without = (
        case.plan.with_device(mine)
        .with_host(pl.lit(is_taking) | (copying & (pl.col("recorded_ns") >= STAGED_COPY_NS)))
        .without_waits(pl.lit(within(items, spans["first"], spans["next"])))
    )
    last = runs.unique("run", keep="last", maintain_order=True)
    inside = pl.lit(within(host, spans["first"] + 1, last["item"] + 1))
    loops = without.with_host((inside | copying) & (pl.col("cause") != "input"))
    return Change(
        with_warm_caches(without, case.plan, WARM_DISPATCH_WORST), with_warm_caches(loops, case.plan)
    )
