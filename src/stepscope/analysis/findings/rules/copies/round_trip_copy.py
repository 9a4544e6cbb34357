"""Data that goes to the host and comes straight back."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.host_results import host_results, users_calls
from stepscope.analysis.findings.mostly import mostly_in
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.optimizer_loop import in_optimizer
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.analysis.findings.transfers.host_state import host_state
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.host.functions import where
from stepscope.lazy import dataclass
from stepscope.names import short_name
from stepscope.registers.policy.device_findings import DETOUR_BYTES
from stepscope.registers.policy.findings import ARRAYS_OF_A_BATCH, MAJORITY, WORTH_SHOWING
from stepscope.units import size

_TYPE_RATIOS = (1, 2, 4, 8)  # of the same numbers in another type
_LAST = 1 << 62
_RESULTS = "Large results go to the host, which computes on them"
_COMPUTE_FIRST = "Compute it on the device (argmax, topk, sums, comparisons) and copy the small result."
_STATE = "State on the host is updated from the device in every step"
_UPDATE_THERE = "Keep what every step updates (an average of the weights, statistics, metrics) on the device, beside the tensors that it is made of, and update it there: {how}. Copy it to the host only to save or evaluate it. Without the memory for it, update it every few steps."
_HOW = {
    "pytorch": "torch._foreach_lerp_(averages, weights, 1 - decay), or add_",
    "jax": "in the jitted step, with the averages donated, as optax.ema does",
    ANY: "in the compiled step",
}
_COMPUTED = "Data goes to the host, is computed on there, and comes back"


@dataclass(frozen=True)
class Trips:
    """Round trips over the host: what they own, how the step is without them, and what takes their time."""

    pairs: pl.DataFrame
    copies: pl.Series  # events
    owned: pl.DataFrame
    changed: Change
    host_computes: bool  # longer than the copies take
    by_ops: bool  # ops of the framework do it, not Python or NumPy


def find(case: Case) -> Finding | None:
    """Round trips in which the host copies, or computes with other code than the framework's ops."""
    trips = round_trips(case)
    if trips is None:
        return _find_state(case) or _find_results(case)
    if trips.host_computes and trips.by_ops:
        return None
    moved = int(case.trace.copies.filter(pl.col("event").is_in(trips.copies.implode()))["bytes"].sum())
    detail = f"{case.of_step(case.per_step(trips.owned))} passes while data goes to the host and comes straight back."
    evidence = {
        "bytes_per_step": moved // max(1, len(case.lengths)),
        "trips_per_step": round(len(trips.pairs) / max(1, len(case.lengths)), 2),
    }
    if not trips.host_computes:
        return timed(case, RULE, trips.owned, trips.changed, detail, evidence)
    names = case.top_names(trips.owned.filter(pl.col("part") == "python"), 1)
    detail += f" The host computes {short_name(names[0]['name'])} meanwhile." if names else ""
    found = timed(case, RULE, trips.owned, trips.changed, detail, evidence, _COMPUTED)
    found.where = case.places(trips.owned.filter(pl.col("part") == "python"))
    return found


def _find_state(case: Case) -> Finding | None:
    """State that the host keeps and updates from tensors of the device."""
    state = host_state(case, in_optimizer(case.trace.events))
    if state is None:
        return None
    steps = max(1, len(case.lengths))
    count, moved = len(state.copies) / steps, int(state.copies["bytes"].sum()) / steps
    names = case.trace.events["name"].gather(state.ops).cast(pl.String).value_counts(sort=True)["name"]
    ops = " and ".join(short_name(name) for name in names[:2])
    detail = (
        f"{case.of_step(case.per_step(state.owned))} passes while {count:,.0f} tensors ({size(moved)}) are copied to the host, "
        f"where {ops} take them."
    )
    evidence = {"bytes_per_step": int(moved), "tensors_per_step": round(count)}
    found = timed(case, RULE, state.owned, state.changed, detail, evidence, _STATE)
    found.fix, found.where = (
        _how_to_update(case),
        where(case.trace, users_calls(case.trace).gather(state.ops)),
    )
    return found


def _find_results(case: Case) -> Finding | None:
    """Large results that the host computes on: what it keeps of them is smaller, and the device could compute it."""
    results = host_results(case)
    if results is None:
        return None
    moved = int(case.trace.copies.filter(pl.col("event").is_in(results.copies.implode()))["bytes"].sum())
    computing = results.owned.filter(pl.col("part") == "python")
    mostly = mostly_in(case.top_names(computing), case.per_step(computing))
    detail = f"{case.of_step(case.per_step(results.owned))} passes while results are copied to the host and computed on there"
    detail += f"{mostly}."
    evidence = {"bytes_per_step": moved // max(1, len(case.lengths))}
    is_state = len(results.copies) > ARRAYS_OF_A_BATCH * len(case.lengths)
    title, fix = (_STATE, _how_to_update(case)) if is_state else (_RESULTS, _COMPUTE_FIRST)
    found = timed(case, RULE, results.owned, results.changed, detail, evidence, title)
    found.fix, found.where = fix, case.places(computing)
    return found


def _how_to_update(case: Case) -> str:
    return _UPDATE_THERE.format(how=_HOW.get(case.trace.info.framework or ANY) or _HOW[ANY])


def round_trips(case: Case) -> Trips | None:
    """A copy to the host, and then a copy back before anything else is launched."""
    if case.device is None:
        return None  # the host is meant to compute
    work = _timed_work(case)
    pairs = _pairs(work)
    if pairs.is_empty():
        return None
    pairs = pl.concat([pairs, _cut_trip(work, pairs)]).sort("item")
    away, back = pairs["item"], pairs["until"]
    inside = within(case.plan.items["item"], away, back)
    copies = case.plan.items.filter(inside, pl.col("event").is_not_null())["event"]
    owned = _slices_between(case, pairs)
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    on_host = case.plan.host.filter(pl.col("item").is_in(case.plan.items["item"].filter(inside).implode()))
    host_ns = int(on_host.filter(pl.col("cause") != "sync")["ns"].sum())
    copy_ns = int(owned.filter(pl.col("part") == "copy")["ns"].sum())
    after = case.plan.items["item"].filter(within(case.plan.items["item"], away + 1, back)).implode()
    # What the host held for the trip is freed after it, which takes long and leaves no event.
    next_items = pl.concat([back + 1, back + 2]).implode()
    freed = pl.col("item").cast(pl.Int64).is_in(next_items) & (pl.col("cause") == "unexplained")
    without = (
        case.plan.with_host(pl.col("item").is_in(after) | freed)
        .with_device(pl.lit(inside) & pl.col("event").is_in(copies.implode()))
        .without_waits(pl.lit(within(case.plan.items["item"], away, back + 1)))
    )
    # The op that copies away, and what the host does until the next launch, belong to the detour as well.
    detour = case.plan.items["item"].filter(within(case.plan.items["item"], away, back + 1)).implode()
    largest = without.with_host(pl.col("item").is_in(detour) & (pl.col("cause") != "input"))
    return Trips(pairs, copies, owned, Change(without, largest), host_ns > copy_ns, _is_by_ops(case, on_host))


def _timed_work(case: Case) -> pl.DataFrame:
    """The plan's device work, in order, with start_ns and end_ns as recorded."""
    work, events = copy_items(case), case.trace.events
    start = events["start_ns"].gather(work["event"])
    return work.with_columns(
        pl.col("item").cast(pl.Int64), start_ns=start, end_ns=start + events["dur_ns"].gather(work["event"])
    )


def _pairs(work: pl.DataFrame) -> pl.DataFrame:
    """item, start_ns of the copies to the host that copies back follow; until, end_ns of the last of these."""
    uploads = work.with_columns(run=(pl.col("direction") == "HtoD").fill_null(False).rle_id())
    back = uploads.select(
        "direction",
        "step",
        *(pl.col(name).last().over("run") for name in ("item", "end_ns")),
        bytes=pl.col("bytes").max().over("run"),
    )
    both = work.with_columns(back.select(pl.all().shift(-1).name.prefix("back_")))
    found = both.filter(
        pl.col("direction") == "DtoH", pl.col("back_direction") == "HtoD", pl.col("bytes") >= DETOUR_BYTES
    )
    # What a step sends after the answer of the one before may be the next request: data that comes back has its size.
    sent, came = pl.col("bytes"), pl.col("back_bytes")
    same = pl.any_horizontal(*((sent == came * n) | (came == sent * n) for n in _TYPE_RATIOS))
    found = found.filter((pl.col("step") == pl.col("back_step")) | same)
    return found.select("item", "start_ns", until="back_item", end_ns="back_end_ns")


def _cut_trip(work: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The trip of which the recording has the end in its first step and the beginning in its last, as in a loop of such trips."""
    away = work.filter(pl.col("direction") == "DtoH", pl.col("bytes") >= DETOUR_BYTES)
    uploads = work["direction"].eq_missing(pl.Series(["HtoD"]))
    sent = len(work) if uploads.all() else int(uploads.arg_min() or 0)
    if away.is_empty() or not sent or away["item"][-1] != work["item"][-1]:
        return pairs.clear()
    rows = [
        (away["item"][-1], away["start_ns"][-1], _LAST, _LAST),
        (-1, -_LAST, work["item"][sent - 1], work["end_ns"][sent - 1]),
    ]
    return pl.DataFrame(rows, schema=pairs.schema, orient="row")


def _is_by_ops(case: Case, on_host: pl.DataFrame) -> bool:
    """Whether long ops of the framework take most of the time in which the host works."""
    working = on_host.filter(pl.col("cause") != "sync")
    long = host_causes(case.trace)["host_compute"].gather(working["event"]).fill_null(False)
    return int(working["ns"].filter(long).sum()) > MAJORITY * int(working["ns"].sum())


def _slices_between(case: Case, pairs: pl.DataFrame) -> pl.DataFrame:
    """The slices from the beginning of a copy away to the end of the copy back, and what waits for them."""
    free = case.free(
        pl.col("part").is_in(["copy", "sync", "dispatch", "unexplained", "python", "device_gap"])
    )
    ranges = pairs.sort("start_ns")
    return free.filter(within(free["start_ns"], ranges["start_ns"], ranges["end_ns"] - 1))


RULE: Rule[Case] = Rule(
    code="round-trip-copy",
    title="Data goes to the host and back",
    turn=80,
    page="device",
    owns="the time from a copy to the host until the copy back, if nothing is launched in between; or many tensors that are copied to the host, or one that an op updates something with in place, and what ops of the framework compute on them before the next launch, unless as many bytes come back or it is the optimizer; or large copies to the host and what the function that requested them computes before the next launch",
    change="both copies, the wait and the host's part take no time; at best, nor do the ops that copy. State on the host is kept on the device: the copies, the waits for them and the ops that take them take no time; at best, nor does the loop around them. Results are computed on the device: the copy with its staging and its memory (also where a wrapper of the framework frees it when the function returns), and the host's computation take no time. Computation that may work on the small result (less than a tenth of the longest, or less than half of it afterwards) disappears only at best; the wait remains",
    fix={
        "pytorch": "Keep the data on the device: drop .cpu() and .numpy() between two steps of the same computation and use the op's device version.",
        ANY: "Keep the data on the device between two steps of the same computation.",
    },
    find=find,
)
