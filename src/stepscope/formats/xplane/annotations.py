"""Step markers, and the spans on Python threads that a user named."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane.decode import Events
from stepscope.formats.xplane.tracks import STEPS
from stepscope.trace.schema import Kind, Role

_NUMBERED = r"^(?:train|test|predict|Step) (\d+)$"
_DIGITS = r"(\d+)$"
# Spans that frameworks open on the user's thread; all else there, that nothing but annotations encloses, is the user's.
_FRAMEWORK = (
    r"::|[(\[:]|^(TFE_|Eager|ParseArguments|DevicePut|PythonRefManager|shard_arg|lower_|backend_compile|ExecuteReplicated"
    r"|H2D|D2H|ThenExecute|XlaModule|jit_|pjit|tf\.|convert_to_tensor|FunctionRun|SessionRun|RunGraph|ValidateInput"
    r"|Iterator|Prefetch|CopyToDevice|CopyFromDevice|BufferFromHost|Transfer|Wait |Handle |KernelAndDevice|TraceContext)"
)
_ROUNDS = 4


def with_markers(events: pl.DataFrame, known: Events) -> pl.DataFrame:
    """The events with role and step of the step markers; none of both where there are no markers."""
    markers = _host_markers(events, known)
    if markers.is_empty():
        markers = _device_markers(events, known)
    if markers.is_empty():
        return events
    count = len(events)
    step = pl.repeat(None, count, dtype=pl.Int32, eager=True).scatter(markers["event"], markers["step"])
    role = pl.repeat(None, count, dtype=Role, eager=True).scatter(
        markers["event"], pl.repeat("step", len(markers), dtype=Role, eager=True)
    )
    return events.with_columns(step=step, role=role)


def _host_markers(events: pl.DataFrame, known: Events) -> pl.DataFrame:
    """Spans with a step number on host threads. A marker inside a marker is part of that step, not another one."""
    found = _numbered(events, known)
    on_host = known.tracks["what"].gather(found["track"]) == "host"
    found = found.filter(on_host & (found["dur_ns"] > 0))
    roots = known.numbers("_r")
    rooted = found.filter(found["event"].is_in(roots.filter(pl.col("value") > 0)["event"].implode()))
    return _outermost(_in_order(rooted if len(rooted) else found))


def _numbered(events: pl.DataFrame, known: Events) -> pl.DataFrame:
    """Spans with the step numbers that their stats give them, or where there are none at all, their names."""
    numbers = known.numbers("step_num")
    if len(numbers):
        steps = numbers["value"].cast(pl.Int32, strict=False)
        return _spans(events, numbers["event"]).with_columns(step=steps).drop_nulls("step")
    named = known.names.filter(pl.col("name").str.contains(_NUMBERED))["row"]
    found = known.name_rows.is_in(named.implode()).arg_true() if len(named) else named
    return _with_number(events, _spans(events, found), _NUMBERED)


def _with_number(events: pl.DataFrame, spans: pl.DataFrame, pattern: str) -> pl.DataFrame:
    text = events["name"].gather(spans["event"]).cast(pl.String)
    return spans.with_columns(step=text.str.extract(pattern).cast(pl.Int32, strict=False)).drop_nulls("step")


def _spans(events: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    columns = {name: events[name].gather(rows) for name in ("track", "start_ns", "dur_ns")}
    return pl.DataFrame({"event": rows.cast(pl.UInt32), **columns})


def _in_order(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.sort(["track", "start_ns", "dur_ns"], descending=[False, False, True])


def _outermost(spans: pl.DataFrame) -> pl.DataFrame:
    """Those of the ordered spans that no other one of the same track encloses."""
    ends = pl.col("start_ns") + pl.col("dur_ns")
    before = ends.cum_max().shift(1).over("track")
    return spans.filter((before.is_null()) | (pl.col("start_ns") >= before))


def _device_markers(events: pl.DataFrame, known: Events) -> pl.DataFrame:
    """Events of the first device's line of steps: every core shows the same ones."""
    lines = [track for track, line_class in enumerate(known.line_classes) if line_class == STEPS]
    if not lines:
        return pl.DataFrame(schema={"event": pl.UInt32, "step": pl.Int32})
    rows = (events["track"] == lines[0]).arg_true()
    return _with_number(events, _spans(events, rows), _DIGITS)


def with_annotations(events: pl.DataFrame, known: Events) -> pl.DataFrame:
    """The events, where spans of the user's own on Python threads are of the kind annotation."""
    tracks = _python_tracks(events, known)
    if not tracks:
        return events
    on_python = events["track"].is_in(pl.Series(tracks, dtype=pl.UInt32).implode())
    is_open = on_python & events["kind"].is_in(["span", "op", "runtime"]) & (events["dur_ns"] > 0)
    spans = _spans(events, is_open.arg_true())
    spans = spans.with_columns(name=known.name_rows.gather(spans["event"]))
    plain = known.names.filter(~pl.col("name").str.contains(_FRAMEWORK) & (pl.col("name") != ""))["row"]
    found = _user_names(_in_order(spans), plain)
    chosen = spans.filter(pl.col("name").is_in(found.implode()))["event"]
    if chosen.is_empty():
        return events
    kind = pl.repeat("annotation", len(chosen), dtype=Kind, eager=True)
    return events.with_columns(kind=events["kind"].scatter(chosen, kind))


def _python_tracks(events: pl.DataFrame, known: Events) -> list[int]:
    """Host threads that show Python calls or step markers, or are called Python."""
    is_python = events["kind"] == "python"
    shown = set(events["track"].filter(is_python).unique())
    if "role" in events.columns:
        shown |= set(events["track"].filter(events["role"].is_not_null()).unique())
    named = known.tracks.filter(pl.col("thread").str.contains("^python") & (pl.col("what") == "host"))["id"]
    return sorted(shown | set(named))


def _user_names(spans: pl.DataFrame, plain: pl.Series) -> pl.Series:
    """Names that are outermost, once the names found before no longer count as enclosing."""
    found = plain.clear()
    for _ in range(_ROUNDS):
        outer = _outermost(spans.filter(~pl.col("name").is_in(found.implode())))
        new = outer.filter(pl.col("name").is_in(plain.implode()))["name"].unique()
        if new.is_empty():
            break
        found = pl.concat([found, new.cast(found.dtype)])
    return found
