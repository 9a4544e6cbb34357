"""What a host event stands for when the device idles behind it: waiting for data, compiling, user code, dispatch, …

An event that explains everything below it comes first (an op inside the DataLoader is input, not dispatch); of
several the outermost counts. Ops, runtime calls and what passes between them are `dispatch`, in whichever package. Where
a thread goes on for long without either, the frames are `python`, and so is an op, or a function with its ops, that
computes for long without a launch (activity.py). An annotation alone is context: it says where, not what.
"""

from __future__ import annotations

from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analysis.host import names
from stepscope.analysis.host.activity import FRAMES, computing_calls, computing_frames, computing_ops
from stepscope.analysis.host.background import waits_for_workers
from stepscope.analysis.host.blocking_launches import blocking_launches
from stepscope.analysis.host.eager_calls import CALL as EAGER_CALL
from stepscope.analysis.host.eager_calls import (
    TRACING,
    around_frames,
    around_tracing,
    first_calls,
    only_dispatch,
)
from stepscope.analysis.host.kernel_loads import loading_launches
from stepscope.analysis.host.tracks import by_track
from stepscope.analysis.host.wrapped_calls import WRAPPERS, in_wrapper
from stepscope.analysis.part_column import Part
from stepscope.native.host import lineage as native
from stepscope.registers.calibration.launches import LEAST_RECORDED_WAIT_NS
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import filled, take
from stepscope.trace.graphs import is_graph_launch
from stepscope.trace.judged_texts import MOST_ASKED, Judged
from stepscope.trace.lookup import distinct as different
from stepscope.trace.lookup import is_named, names_of, parents_of
from stepscope.trace.schema import KINDS, ROLES, Kind, Role
from stepscope.trace.scopes import ancestors, sums_below
from stepscope.trace.trace import Trace

_PARTS = {
    native.OP: "dispatch", native.CALL: "dispatch", native.FRAMEWORK: "dispatch", native.LIBRARY: "python",
    native.USER: "python", native.CONTEXT: "python", native.FRAMEWORK_CONTEXT: "dispatch", native.WAIT_DEVICE: "sync",
    native.WAIT_THREAD: "dispatch", native.INPUT: "input", native.COMPILE: "compile", native.IO: "io",
    native.HOST_COLLECTIVE: "host_collective", native.PROFILER: "profiler", native.GARBAGE: "python",
    native.OWN: "profiler", native.ALLOCATOR: "allocator",
}  # fmt: skip
_FLAGS = {
    "acts": native.ACTS, "computes": native.COMPUTES, "waits": native.WAITS, "waits_for_thread": native.WAITS_FOR_THREAD,
    "leads_to_op": native.LEADS_TO_OP,
}  # fmt: skip

_ROLES = pl.Series([*ROLES, None], dtype=Role)
_NO_EVENTS = pl.Series([], dtype=pl.UInt32)

_known: WeakKeyDictionary[Trace, pl.DataFrame] = WeakKeyDictionary()
_known_codes: WeakKeyDictionary[Trace, pl.Series] = WeakKeyDictionary()
# Traces with the host events of another one: what these stand for is asked of that.
_same_host: WeakKeyDictionary[Trace, Trace] = WeakKeyDictionary()
_at_once = RLock()  # the account and the replay ask side by side
_sharing = Lock()  # another one, to say that two traces share causes takes no time, and computing them does


def share_causes(source: Trace, derived: Trace) -> Trace:
    """The derived trace, whose host events are those of the source: they are judged once for both."""
    with _sharing:
        _same_host[derived] = _same_host.get(source, source)
    return derived


def same_host(trace: Trace) -> Trace:
    """The trace that stands for all those with its host events."""
    with _sharing:
        return _same_host.get(trace, trace)


def host_causes(trace: Trace) -> pl.DataFrame:
    """For every event, as the innermost of its thread, what it stands for.

    cause: a part of the account (null: nothing). named_by: the event that gives it its name. detail: the event that
    says more, such as the call site of a wait or what was slow inside the input. acts: it explains a moment by
    itself (an annotation alone does not, and a thread that waits for another does not). computes: inside an op.
    waits: for the device. waits_for_thread. leads_to_op: framework code, best named by the op that it comes to.
    host_compute: an op that the host itself computes. own: user code, whatever part its time is.
    api: the outermost framework call around it.
    """
    trace = same_host(trace)
    with _at_once:
        found = _known.get(trace)
        if found is None:
            found = _known[trace] = _causes(trace)
    return found


def is_wait(trace: Trace) -> pl.Series:
    """Host events in which a thread waits for the device."""
    return host_causes(trace)["waits"]


def host_codes(trace: Trace) -> pl.Series:
    """What each event is, one of the codes of native.lineage, before its surroundings are asked."""
    trace = same_host(trace)
    with _at_once:
        found = _known_codes.get(trace)
        if found is None:
            found = _known_codes[trace] = _with_guards(trace, _codes(trace))
    return found


def _causes(trace: Trace) -> pl.DataFrame:
    events = trace.events
    code, named, detail, api, flags = native.lineage(
        parents_of(events),
        buffer(host_codes(trace)),
        buffer((events["kind"] == "annotation").cast(pl.UInt8)),
    )
    causes = pl.Series([_PARTS.get(number) for number in range(native.ALLOCATOR + 1)], dtype=Part)
    codes, bits = series("code", code, pl.UInt8), series("flags", flags, pl.UInt8)
    found = {
        "id": events["id"],
        "code": codes,
        "cause": take(causes, codes),
        "named_by": series("named_by", named, pl.UInt32),
        "detail": or_null(series("detail", detail, pl.UInt32)),
        "api": or_null(series("api", api, pl.UInt32)),
    }
    by_name = pl.DataFrame(found | {name: (bits & bit) != 0 for name, bit in _FLAGS.items()})
    judged = _by_activity(trace, _by_eager_call(events, by_name)).drop("id", "code")
    return _with_background(trace, judged)


def _with_background(trace: Trace, causes: pl.DataFrame) -> pl.DataFrame:
    """The causes where the loop waits for what its own workers make: that is its input."""
    awaited = waits_for_workers(trace)
    if not awaited.any():
        return causes
    mine = awaited & causes["waits_for_thread"] & (causes["cause"] == "dispatch")
    return causes.with_columns(cause=pl.when(mine).then(pl.lit("input", dtype=Part)).otherwise("cause"))


def _by_eager_call(events: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """TensorFlow's call around an op computes nothing; that of a function which was just traced compiles it."""
    dispatched = only_dispatch(events)
    if not dispatched.any():
        return causes
    if is_named(events, TRACING).any():
        causes = _with_compiling(events, causes)
    of_call = dispatched & _is_of_call(events, causes["named_by"])
    return causes.with_columns(computes=causes["computes"] & ~of_call)


def _with_compiling(events: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """The causes where functions are traced: their tracing, and what waits for them to be compiled."""
    compiled = _compiles(events, causes)
    around = around_frames(events)
    waiting = pl.when(take(compiled, around)).then(around)
    rows = pl.select(pl.coalesce(waiting, around_tracing(events), events["id"])).to_series()
    if (rows != events["id"]).any():
        causes = causes.select(pl.all().gather(rows)).with_columns(id=events["id"])
        compiled = take(compiled, rows)
    return causes.with_columns(
        cause=pl.when(compiled).then(pl.lit("compile", dtype=Part)).otherwise("cause"),
        computes=pl.col("computes") & ~compiled,
    )


def _compiles(events: pl.DataFrame, causes: pl.DataFrame) -> pl.Series:
    """What is named by the first call of a function, and is not named otherwise inside."""
    found: pl.Series = take(first_calls(events), causes["named_by"])
    return found & causes["code"].is_in([native.OP, native.CALL, native.WAIT_THREAD])


def _is_of_call(events: pl.DataFrame, named_by: pl.Series) -> pl.Series:
    """Whether it is an eager call that names it: an op inside has a name of its own, and computes."""
    found: pl.Series = take(is_named(events, EAGER_CALL), named_by)
    return found


def _by_activity(trace: Trace, causes: pl.DataFrame) -> pl.DataFrame:
    """The causes with what the threads did taken into account: frames and ops that compute, and those that dispatch."""
    code = causes["code"]
    own = pl.col("code").is_in([native.LIBRARY, native.USER, native.CONTEXT])
    frame = pl.col("code").is_in(FRAMES) & pl.col("acts")
    op, call = computing_ops(trace, code), computing_calls(trace, code)
    if op.null_count() == len(op) and not call.any() and not causes.select(frame.any()).item():
        return causes.with_columns(host_compute=pl.lit(False), own=own)
    seen = causes.with_columns(
        frame=_named_frames(trace),
        caller=pl.when(own).then("named_by").otherwise("detail"),
        computing=computing_frames(trace, code),
        op=op,
        call=call,
    )
    by_frame = frame & pl.col("computing") & pl.col("frame").is_not_null()
    in_op = pl.col("code").is_between(native.OP, native.FRAMEWORK)
    by_op = pl.col("op").is_not_null() & in_op & ~by_frame
    by_frame |= pl.col("call") & (in_op | frame) & pl.col("frame").is_not_null() & ~by_op
    more = pl.when(pl.col("caller") != pl.col("frame")).then("caller").otherwise("id")
    python, dispatch = (pl.lit(name, dtype=Part) for name in ("python", "dispatch"))
    return seen.with_columns(
        cause=pl.when(by_frame | by_op).then(python).when(frame & ~pl.col("computing")).then(dispatch).otherwise("cause"),
        named_by=pl.when(by_frame).then("frame").when(by_op).then("op").otherwise("named_by"),
        detail=pl.when(~by_frame).then("detail").when(more != pl.col("frame")).then(more),
        leads_to_op=pl.col("leads_to_op") & ~by_frame,
        host_compute=by_op,
        own=own,
    ).drop("frame", "caller", "computing", "op", "call")  # fmt: skip


def _named_frames(trace: Trace) -> pl.Series:
    """For each event the closest frame that names a place in someone's code, or a user's annotation; itself, if it is one."""
    events = trace.events
    placed = is_named(events, names.PLACE) & ~is_named(events, names.STANDARD_FRAME)
    is_frame = placed & (events["kind"] == "python")
    is_frame |= host_codes(trace) == native.CONTEXT
    above = ancestors(events, is_frame)
    return pl.select(pl.when(is_frame).then(events["id"]).otherwise(above)).to_series()


def or_null(events: pl.Series) -> pl.Series:
    """Null where the hot loops say that there is no event."""
    return pl.select(pl.when(events != native.NONE).then(events)).to_series()


def _codes(trace: Trace) -> pl.Series:
    """What each event is by its kind, role and name, each combination judged once; device events are nothing here."""
    events = trace.events
    on_host = take(by_track(trace, pl.col("what") == "host"), events["track"]) | (
        events["kind"] == "overhead"
    )
    texts, text = _numbered(events["name"])
    pairs, pair = _numbered(
        _physical(events["kind"], len(KINDS)) * len(_ROLES) + _physical(events["role"], len(ROLES))
    )
    key = (text * len(pairs) + pair) * on_host.cast(pl.UInt32)
    distinct = different(key)
    kind_and_role = take(pairs, distinct % len(pairs))
    table = pl.DataFrame(
        {
            "name": take(texts, distinct // len(pairs)),
            "kind": take(pl.Series([*KINDS, None], dtype=Kind), kind_and_role // len(_ROLES)),
            "role": take(_ROLES, kind_and_role % len(_ROLES)),
        }
    )  # fmt: skip
    codes = pl.repeat(native.SILENT, len(texts) * len(pairs), dtype=pl.UInt8, eager=True)
    codes = codes.scatter(distinct, _judged(table, _device_collectives(trace)))
    found: pl.Series = take(codes, key) * on_host.cast(pl.UInt8)
    return found


def _judged(table: pl.DataFrame, device_collectives: bool) -> pl.Series:
    """The code of each row of kind, role and name."""
    if len(table) > MOST_ASKED:
        return _judge(table, device_collectives)
    memo = _judged_before[device_collectives]
    found = memo.ask(table.rows(), lambda fresh: _judge(table[fresh], device_collectives).to_list())
    return pl.Series(found, dtype=pl.UInt8)


_judged_before: dict[bool, Judged[int]] = {False: Judged(), True: Judged()}


def _judge(table: pl.DataFrame, device_collectives: bool) -> pl.Series:
    silent = pl.lit(native.SILENT, dtype=pl.UInt8)
    judged: Any = pl.when(False).then(silent)
    has_python = bool((table["kind"] == "python").any())
    for condition, code in names.rules(device_collectives, has_python):
        judged = judged.when(condition).then(pl.lit(code, dtype=pl.UInt8))
    codes: pl.Series = table.select(judged.otherwise(silent)).to_series()
    return codes


def _physical(column: pl.Series, missing: int) -> pl.Series:
    codes: pl.Series = column.to_physical().cast(pl.UInt32)
    return codes.fill_null(missing) if codes.null_count() else codes


def _numbered(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The distinct values (null first), and for each row the number of its own. Their codes are small."""
    distinct = pl.concat([pl.Series([None], dtype=values.dtype), different(values)])
    code = distinct.to_physical()
    size = 1 + (int(code[1:].sort()[-1]) if len(code) > 1 else 0)
    places = pl.repeat(0, size, dtype=pl.UInt32, eager=True).scatter(
        code[1:], pl.int_range(1, len(distinct), dtype=pl.UInt32, eager=True)
    )
    numbers = take(places, values.to_physical())
    return distinct, numbers.fill_null(0) if numbers.null_count() else numbers


def _device_collectives(trace: Trace) -> bool:
    events = trace.events
    return bool(((events["kind"] == "kernel") & (events["role"] == "collective")).any())


def _with_guards(trace: Trace, code: pl.Series) -> pl.Series:
    """What names alone get wrong, corrected by what the events enclose and launch."""
    events = trace.events
    # A loop or function that is named after its batch or tokens, but trains on it or runs a network, is no input.
    runs = filled(events["role"].is_in(["optimizer", "backward"])) | _layers(events)
    named = code == native.INPUT
    inside = ancestors(events, named).filter(runs) if runs.any() else _NO_EVENTS
    launching = [_launching_most(trace, named), _launching_throughout(trace, named)]
    outer = pl.concat([inside, *launching]).drop_nulls().unique()
    kinds = take(events["kind"], outer)
    mended = code.scatter(
        outer,
        pl.select(pl.when(kinds == "annotation").then(native.CONTEXT).otherwise(native.USER)).to_series().cast(pl.UInt8),
    )  # fmt: skip
    # A built-in that calls an op is the framework's, whatever its name.
    parents = events["parent"].filter(code == native.OP).drop_nulls().unique()
    calls_op = parents.filter(take(mended, parents) == native.LIBRARY)
    mended = mended.scatter(calls_op, native.FRAMEWORK)
    for wrapper in WRAPPERS if trace.info.framework == "jax" else ():
        mended = mended.scatter(events["id"].filter(in_wrapper(events, wrapper)), native.FRAMEWORK)
    mended = mended.scatter(_blocking_copies(trace), native.WAIT_DEVICE)
    mended = mended.scatter(blocking_launches(trace), native.WAIT_DEVICE)
    mended = mended.scatter(loading_launches(trace), native.COMPILE)
    return _without_brief_waits(events, mended)


def _launching_most(trace: Trace, asked: pl.Series) -> pl.Series:
    """Those of the events asked for that, together with others of their name, launch most of the device's work.

    Programs and captured graphs have no ops that would show a network's layers; what PyTorch launches otherwise has.
    """
    launches = trace.links.filter(pl.col("why") == "launch")
    shows_layers = trace.info.framework not in ("jax", "tensorflow")
    if launches.is_empty() or not asked.any() or (shows_layers and not is_graph_launch(trace.events).any()):
        return _NO_EVENTS
    around = ancestors(trace.events, asked)
    work = pl.DataFrame(
        {"outer": take(around, launches["from"]), "ns": take(trace.events["dur_ns"], launches["to"])}
    )
    work = work.with_columns(name=take(trace.events["name"], work["outer"]))
    if shows_layers:
        of_graph = take(is_graph_launch(trace.events), launches["from"])
        work = work.with_columns(outer=pl.when(of_graph).then("outer"))
    by_name = work.drop_nulls("outer").group_by("name").agg(pl.col("ns").sum(), pl.col("outer").unique())
    most = by_name.filter(pl.col("ns") > MAJORITY * int(work["ns"].sum()))
    found: pl.Series = most["outer"].explode().cast(_NO_EVENTS.dtype)
    return found


def _launching_throughout(trace: Trace, asked: pl.Series) -> pl.Series:
    """Those of the events asked for that, together with others of their name, spend most of their time in ops that launch kernels.

    The device waits for its launches then, and not for data. An op that copies may wait for that: a loader has such ops.
    """
    events = trace.events
    launches = trace.links.filter(pl.col("why") == "launch")
    if launches.is_empty() or not asked.any():
        return _NO_EVENTS
    kinds = take(events["kind"], launches["to"])
    launched = _sum_below(events, launches["from"].filter(kinds == "kernel"))
    copied = _sum_below(events, launches["from"].filter(kinds == "copy"))
    is_op = (events["kind"] == "op") & (launched > 0) & (copied == 0)
    outermost = is_op & ancestors(events, is_op).is_null()
    in_ops = _sum_below(events, events["id"].filter(outermost), events["dur_ns"])
    calls = events.select("id", "name", "dur_ns", in_ops=in_ops).filter(asked)
    most = pl.col("in_ops").sum().over("name") > MAJORITY * pl.col("dur_ns").sum().over("name")
    return calls.filter(most)["id"]


def _sum_below(events: pl.DataFrame, counted: pl.Series, values: pl.Series | None = None) -> pl.Series:
    """For each event, how many of those counted are inside it or it itself; of `values`, their sum."""
    own = pl.repeat(0, len(events), dtype=pl.Int64, eager=True)
    rows = counted.unique()
    own = own.scatter(rows, 1 if values is None else take(values, rows))
    return sums_below(events, own)


def _layers(events: pl.DataFrame) -> pl.Series:
    """Ops of a network's layers; what prepares images or text has none of them."""
    known = names_of(events)
    layers = known.filter(known.cast(pl.String).str.contains(names.LAYERS))
    return filled((events["kind"] == "op") & events["name"].is_in(layers.implode()))


def _without_brief_waits(events: pl.DataFrame, code: pl.Series) -> pl.Series:
    """A call that asks a device which is done already does not wait: it is one among others."""
    brief = (code == native.WAIT_DEVICE) & (events["dur_ns"] < LEAST_RECORDED_WAIT_NS)
    python = brief & (events["kind"] == "python")
    return code.scatter(brief.arg_true(), native.CALL).scatter(python.arg_true(), native.FRAMEWORK)


def _blocking_copies(trace: Trace) -> pl.Series:
    """Calls that returned only when the copy they asked for was done: the host waited, whatever the call is named."""
    launches = trace.links.filter(pl.col("why") == "launch")
    events = trace.events
    end = events["start_ns"] + events["dur_ns"]
    is_copy = take(events["kind"] == "copy", launches["to"])
    is_call = take(events["kind"] == "runtime", launches["from"])
    waited = take(end, launches["from"]) >= take(end, launches["to"])
    calls: pl.Series = launches["from"].filter(is_copy & is_call & waited)
    return calls.unique()
