"""What a host event stands for when the device idles behind it: waiting for data, compiling, user code, dispatch, …

An event that explains everything below it comes first (an op inside the DataLoader is input, not dispatch); of
several the outermost counts. A user's frame is `python`; a framework's frame, an op and a runtime call are
`dispatch`; a library's frame is what the frame above it is. An annotation alone is context: it says where, not what.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analysis import host_names as names
from stepscope.native import segments as native
from stepscope.trace.columns import buffer, series
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_PARTS = {
    names.OP: "dispatch", names.CALL: "dispatch", names.FRAMEWORK: "dispatch", names.LIBRARY: "python",
    names.USER: "python", names.CONTEXT: "python", names.FRAMEWORK_CONTEXT: "dispatch", names.WAIT_DEVICE: "sync",
    names.WAIT_THREAD: "dispatch", names.INPUT: "input", names.COMPILE: "compile", names.IO: "io",
    names.HOST_COLLECTIVE: "host_collective", names.PROFILER: "profiler", names.GARBAGE: "python",
}  # fmt: skip
_CONTEXTS = (names.CONTEXT, names.FRAMEWORK_CONTEXT)
_WAITS = (names.WAIT_DEVICE, names.WAIT_THREAD)

_known: WeakKeyDictionary[Trace, pl.DataFrame] = WeakKeyDictionary()


def host_causes(trace: Trace) -> pl.DataFrame:
    """For every event, as the innermost of its thread, what it stands for.

    cause: a part of the account (null: nothing). named_by: the event that gives it its name. detail: the event that
    says more, such as the call site of a wait or what was slow inside the input. acts: it explains a moment by
    itself (an annotation alone does not, and a thread that waits for another does not). computes: inside an op.
    waits: for the device. waits_for_thread. leads_to_op: framework code, best named by the op that it comes to.
    api: the outermost framework call around it.
    """
    found = _known.get(trace)
    if found is None:
        found = _known[trace] = _causes(trace)
    return found


def is_wait(trace: Trace) -> pl.Series:
    """Host events in which a thread waits for the device."""
    return host_causes(trace)["waits"]


def host_codes(trace: Trace) -> pl.Series:
    """What each event is, one of the codes of host_names, before its surroundings are asked."""
    return _with_guards(trace, _codes(trace))


def _causes(trace: Trace) -> pl.DataFrame:
    events = trace.events
    code = host_codes(trace)
    strong_by = _strongest(events, code)
    above = _resolved(events, code)
    frame = pl.DataFrame(
        {
            "id": events["id"],
            "code": above,
            "strong_by": strong_by,
            "strong": code.gather(strong_by),
            "user_by": _nearest_or_self(events, code == names.USER),
            "op_by": _nearest_or_self(events, code == names.OP),
            "context_by": _nearest_or_self(events, code.is_in(_CONTEXTS)),
            "own_context_by": _nearest_or_self(events, code == names.CONTEXT),
            "api": _api(events, code),
            "in_python": _nearest_or_self(events, code.is_in([names.USER, names.FRAMEWORK, names.LIBRARY])).is_not_null(),
        }
    )  # fmt: skip
    return _spoken_for(frame)


def _spoken_for(frame: pl.DataFrame) -> pl.DataFrame:
    code, strong = pl.col("code"), pl.col("strong")
    weak = strong.is_null()
    is_context = code.is_in(_CONTEXTS)
    # Of an annotation and a user's frame the inner one says more.
    user = pl.max_horizontal("user_by", "own_context_by")
    cause = pl.coalesce(strong, code).replace_strict(_PARTS, default=None, return_dtype=pl.String)
    python = weak & (cause == "python")
    named = (
        pl.when(~weak).then(pl.col("strong_by"))
        .when(python).then(pl.coalesce(user, "api", "id"))
        .when(is_context).then(pl.col("id"))
        .otherwise(pl.coalesce("op_by", "api", "id"))
    )  # fmt: skip
    inside = pl.max_horizontal(_below("user_by"), _below("op_by"))
    said_more = (
        pl.when(~weak).then(pl.coalesce(inside, pl.when(pl.col("id") != pl.col("strong_by")).then("id")))
        .when(python).then(pl.when(pl.col("id") != named).then("id"))
        .otherwise(pl.coalesce("user_by", "context_by"))
    )  # fmt: skip
    waits = weak & (code == names.WAIT_DEVICE)
    return frame.select(
        cause=cause,
        named_by=named,
        detail=pl.when(said_more != named).then(said_more),
        acts=pl.when(weak)
        .then((code != names.SILENT) & (code != names.WAIT_THREAD) & (~is_context | pl.col("in_python")))
        .otherwise(True),
        computes=(weak & pl.col("op_by").is_not_null() & (cause == "dispatch")).fill_null(False),
        waits=waits,
        waits_for_thread=weak & (code == names.WAIT_THREAD),
        leads_to_op=weak & code.is_in([names.FRAMEWORK, names.FRAMEWORK_CONTEXT]) & pl.col("op_by").is_null(),
        api="api",
    )


def _below(column: str) -> pl.Expr:
    """The event where it lies inside the one that explains: what comes later in the nesting has a higher id."""
    return pl.when(pl.col(column) > pl.col("strong_by")).then(column)


def _codes(trace: Trace) -> pl.Series:
    """What each event is by its kind, role and name; device events are nothing here."""
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    key = ["kind", "role", "name"]
    on_host = trace.events["track"].is_in(host.implode()) | (trace.events["kind"] == "overhead")
    distinct = trace.events.filter(on_host).select(key).unique()
    judged: Any = pl.when(False).then(pl.lit(names.SILENT, dtype=pl.UInt8))
    for condition, code in names.rules(_device_collectives(trace)):
        judged = judged.when(condition).then(pl.lit(code, dtype=pl.UInt8))
    table = distinct.with_columns(code=judged.otherwise(pl.lit(names.SILENT, dtype=pl.UInt8)))
    found = trace.events.select(key).join(table, on=key, how="left", nulls_equal=True, maintain_order="left")
    return found.select(
        pl.when(on_host).then("code").fill_null(pl.lit(names.SILENT, dtype=pl.UInt8)).alias("code")
    ).to_series()


def _device_collectives(trace: Trace) -> bool:
    events = trace.events
    return bool(((events["kind"] == "kernel") & (events["role"] == "collective")).any())


def _with_guards(trace: Trace, code: pl.Series) -> pl.Series:
    """What names alone get wrong, mended by what the events enclose and launch."""
    events = trace.events
    # A loop or function that is named after its batch, but trains on it, is no input.
    trains = events["role"].is_in(["optimizer", "backward"]).fill_null(False)
    outer = ancestors(events, code == names.INPUT).filter(trains).drop_nulls().unique()
    by_name = events["role"].gather(outer).ne_missing("input")
    outer = outer.filter(by_name)
    kinds = events["kind"].gather(outer)
    mended = code.scatter(
        outer,
        pl.select(pl.when(kinds == "annotation").then(names.CONTEXT).otherwise(names.USER)).to_series().cast(pl.UInt8),
    )  # fmt: skip
    # A built-in that calls an op is the framework's, whatever its name.
    parents = events["parent"].filter(code == names.OP).drop_nulls().unique()
    calls_op = parents.filter(mended.gather(parents) == names.LIBRARY)
    mended = mended.scatter(calls_op, names.FRAMEWORK)
    return mended.scatter(_blocking_copies(trace), names.WAIT_DEVICE)


def _blocking_copies(trace: Trace) -> pl.Series:
    """Calls that returned only when the copy they asked for was done: the host waited, whatever the call is named."""
    launches = trace.links.filter(pl.col("why") == "launch")
    events = trace.events
    end = events["start_ns"] + events["dur_ns"]
    is_copy = (events["kind"] == "copy").gather(launches["to"])
    is_call = (events["kind"] == "runtime").gather(launches["from"])
    waited = end.gather(launches["from"]) >= end.gather(launches["to"])
    calls: pl.Series = launches["from"].filter(is_copy & is_call & waited)
    return calls.unique()


def _resolved(events: pl.DataFrame, code: pl.Series) -> pl.Series:
    """A library's frame stands for what it was called from, and everything inside a wait is the wait."""
    speaks = code.is_in([names.LIBRARY, names.SILENT]).not_()
    caller = code.gather(ancestors(events, speaks))
    inherits = (code == names.LIBRARY) & caller.is_in(
        [names.FRAMEWORK, names.OP, names.CALL, names.WAIT_DEVICE, names.WAIT_THREAD]
    ).fill_null(False)
    found = pl.select(pl.when(inherits).then(caller).otherwise(code)).to_series()
    plain = found.is_in([names.CALL, names.FRAMEWORK])
    asked = code.gather(ancestors(events, code.is_in([*_WAITS, names.OP, names.USER])))
    waiting = plain & (asked == names.WAIT_DEVICE).fill_null(False)
    resolved = pl.when(waiting).then(names.WAIT_DEVICE).otherwise(found).cast(pl.UInt8)
    return pl.select(resolved).to_series()


def _api(events: pl.DataFrame, code: pl.Series) -> pl.Series:
    """The outermost call below the nearest user frame or annotation: what the user asked for."""
    boundary = code.is_in([names.USER, names.SILENT, *_CONTEXTS])
    up = buffer(events["parent"].fill_null(native.NONE))
    return _or_null(native.roots(up, buffer(boundary.cast(pl.UInt8))))


def _strongest(events: pl.DataFrame, code: pl.Series) -> pl.Series:
    """The outermost event that explains all below it; of a loader's frame and its annotation, the annotation."""
    annotated = _outermost(events, (code == names.INPUT) & (events["kind"] == "annotation"))
    return pl.select(pl.coalesce(annotated, _outermost(events, code >= names.INPUT))).to_series()


def _outermost(events: pl.DataFrame, wanted: pl.Series) -> pl.Series:
    up = buffer(events["parent"].fill_null(native.NONE))
    return _or_null(native.outermost(up, buffer(wanted.cast(pl.UInt8))))


def _nearest_or_self(events: pl.DataFrame, wanted: pl.Series) -> pl.Series:
    above = ancestors(events, wanted.fill_null(False))
    return pl.select(pl.when(wanted.fill_null(False)).then(events["id"]).otherwise(above)).to_series()


def _or_null(found: Any) -> pl.Series:
    column = series("id", found, pl.UInt32)
    return pl.select(pl.when(column != native.NONE).then(column)).to_series()
