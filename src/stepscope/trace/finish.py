"""From a reader's draft to a trace: events sorted, nested and numbered; every reference follows them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import polars as pl

from stepscope.native import order
from stepscope.native.spans import nesting, sort
from stepscope.trace.columns import buffer, rows_or_null, series
from stepscope.trace.devices import bounded_memory, bounded_tracks, described_devices, renumbered_memory
from stepscope.trace.draft import Draft
from stepscope.trace.flows import with_flows
from stepscope.trace.frames import take, take_largest
from stepscope.trace.header import checked
from stepscope.trace.problems import Problems, problem
from stepscope.trace.roles import roles
from stepscope.trace.schema import EVENT_REFERENCES, Text, conform
from stepscope.trace.scopes import ancestors, with_module_scopes
from stepscope.trace.step_of_event import mark_steps
from stepscope.trace.trace import Trace, TraceInfo

UNNAMED = "(unnamed)"
COLD_ROWS_OF_A_THREAD = 100_000  # fewer are sorted before a thread has started
# What the native loops need; a reader may leave it to Polars which integers it takes.
_TYPES: dict[str, pl.DataType] = {
    "track": pl.UInt32(),
    "name": Text,
    "start_ns": pl.Int64(),
    "dur_ns": pl.Int64(),
}
_BY_READERS = pl.Schema(_TYPES)


def finish(draft: Draft) -> Trace:
    """The trace that the draft describes."""
    tracks = conform("tracks", draft.tracks).sort("id")
    events = _without_null_names(draft.events.cast(_BY_READERS), draft.problems)
    tracks = bounded_tracks(tracks, events, draft.problems)
    events, moved = _sorted(_without_negative_durations(events, draft.problems))
    if sum(map(len, draft.cold.values())) < COLD_ROWS_OF_A_THREAD:
        return Trace(_finish_tables(draft, tracks, events, moved), _finish_cold(draft.cold, moved))
    with ThreadPoolExecutor(1, thread_name_prefix="stepscope-finish") as pool:
        cold = pool.submit(_finish_cold, draft.cold, moved)  # nothing else depends on it
        tables = _finish_tables(draft, tracks, events, moved)
    return Trace(tables, cold.result())


def _finish_cold(cold: Mapping[str, pl.DataFrame], moved: pl.Series | None) -> dict[str, pl.DataFrame]:
    return {name: _sorted_by(_moved(frame, ("event",), moved), "event") for name, frame in cold.items()}


def _finish_tables(
    draft: Draft, tracks: pl.DataFrame, events: pl.DataFrame, moved: pl.Series | None
) -> dict[str, pl.DataFrame]:
    """All tables that are not cold, of sorted events."""
    events = _nested(events, tracks, draft.problems)
    tables = {name: _moved(frame, EVENT_REFERENCES[name], moved) for name, frame in draft.referring().items()}
    tables["memory"] = bounded_memory(tables["memory"], draft.problems)
    tables["links"] = with_flows(tables["links"], draft.flows, events, draft.problems)
    given = events["role"] if "role" in events.columns else None
    events = events.with_columns(roles(events["name"], given).alias("role"))
    events = mark_steps(events, tracks, _launches(tables["links"]))
    tables["ops"] = with_module_scopes(_with_python_parent(tables["ops"], events), events)
    tables["kernels"] = _with_launching_op(tables["kernels"], tables["links"], events)
    tables |= {"events": events, "tracks": tracks, "counters": draft.counters, "modules": draft.modules}
    tables |= {"blocks": draft.blocks, "frames": draft.frames}
    info = _with_devices(checked(draft.info, draft.problems), tracks, events)
    tables["memory"] = renumbered_memory(tables["memory"], info.devices)
    tables |= {"traces": info.frame(), "problems": draft.problems.frame()}
    return {name: _in_order(name, conform(name, frame)) for name, frame in tables.items()}


def _with_devices(info: TraceInfo, tracks: pl.DataFrame, events: pl.DataFrame) -> TraceInfo:
    busy = tracks.filter(
        (pl.col("what") == "device") & pl.col("id").is_in(events["track"].unique().implode())
    )
    return replace(info, devices=described_devices(info.devices, set(busy["device"].drop_nulls())))


# So that the same events give the same tables, in whatever order a file listed them.
_ORDER = {"memory": ["time_ns", "event"]}


def _in_order(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    if name not in EVENT_REFERENCES or frame.is_empty():
        return frame
    return _links_in_order(frame) if name == "links" else _sorted_by(frame, *_ORDER.get(name, ["event"]))


def _sorted_by(frame: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Often it is in order already, and finding that out costs next to nothing."""
    if len(keys) == 1 and frame[keys[0]].is_sorted():
        return frame
    return frame.sort(keys, maintain_order=True)


def _links_in_order(links: pl.DataFrame) -> pl.DataFrame:
    """By both ends, and where several links have the same ends by their reason. Readers mostly give them by one end."""
    if not _by_ends(links):
        begin = links["from"]
        rows = order.by_key(buffer(begin), take_largest(begin) + 1)
        links = links[series("rows", rows, pl.UInt32)]
    return links if _by_ends(links) else links.sort(["from", "to", "why"], maintain_order=True)


def _by_ends(links: pl.DataFrame) -> bool:
    return order.ascends(buffer(links["from"]), buffer(links["to"]))


def _without_negative_durations(events: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    negative = int((events["dur_ns"] < 0).sum()) if len(events) else 0
    if not negative:
        return events
    problems.add(
        problem(
            "negative-duration",
            "{count} events end before they start; they are kept with a duration of 0.",
            count=negative,
        )
    )
    return events.with_columns(pl.col("dur_ns").clip(lower_bound=0))


def _without_null_names(events: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    """Every table and page lists work by its name: what has none gets one that says so."""
    unnamed = events["name"].null_count()
    if not unnamed:
        return events
    problems.add(
        problem(
            "unnamed-events",
            f"{{count}} events have no readable name; they are kept as {UNNAMED}.",
            count=unnamed,
        )
    )
    return events.with_columns(pl.col("name").fill_null(pl.lit(UNNAMED, dtype=Text)))


def _sorted(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
    """Events by track, start and longer first, and for each row of the draft its place among them: None for its own."""
    events = events.with_row_index("id")
    track, start, dur = (buffer(events[name]) for name in ("track", "start_ns", "dur_ns"))
    if order.is_sorted(track, start, dur):
        return events, None
    rows = sort.by_time(track, start, dur, take_largest(events["track"]) + 1)
    ordered = events[series("rows", rows, pl.UInt32)]
    moved = series("id", order.invert(rows), pl.UInt32)
    return ordered.with_columns(id=pl.int_range(pl.len(), dtype=pl.UInt32)), moved


def _moved(frame: pl.DataFrame, columns: tuple[str, ...], moved: pl.Series | None) -> pl.DataFrame:
    """The frame with row numbers of the draft replaced by event ids."""
    present = [name for name in columns if name in frame.columns]
    if frame.is_empty():
        return frame
    if moved is None:
        return frame.with_columns(pl.col(name).cast(pl.UInt32) for name in present)
    return frame.with_columns(take(moved, frame[name].cast(pl.UInt32)).alias(name) for name in present)


_BEGINS_OR_ENDS_ANNOTATION = r"_record_function_enter|torch/autograd/profiler\.py\(\d+\):\s?__exit__$"


def _nested(events: pl.DataFrame, tracks: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    count = len(events)
    parent = array("I", [0]) * count
    depth = array("H", [0]) * count
    flat = _flat(tracks, take_largest(events["track"]) + 1 if count else 0)
    overlaps, _ = nesting.nest(
        buffer(events["track"]), buffer(events["start_ns"]), buffer(events["dur_ns"]), flat, parent, depth
    )
    overlaps -= _overlapping_by_design(events) if overlaps else 0
    if overlaps > 0:
        problems.add(
            problem(
                "outlives-parent",
                "{count} events start inside another event of their thread and end after it.",
                count=overlaps,
            )
        )
    return events.with_columns(rows_or_null("parent", parent), series("depth", depth, pl.UInt16))


def _overlapping_by_design(events: pl.DataFrame) -> int:
    """PyTorch's calls that begin and end an annotation: it begins inside the one, and the other outlives it."""
    names = events["name"].unique()
    calls = names.filter(names.cast(pl.String).str.contains(_BEGINS_OR_ENDS_ANNOTATION))
    return int(events["name"].is_in(calls.implode()).sum()) if len(calls) else 0


def _flat(tracks: pl.DataFrame, count: int) -> bytes:
    """Tracks that do not nest: on a GPU stream work is queued, never enclosed, even where it overlaps."""
    flags = bytearray(count)
    streams = tracks.filter((pl.col("what") == "device") & (pl.col("device_kind") != "tpu"))
    for track in streams["id"]:
        if track < count:
            flags[track] = 1
    return bytes(flags)


def _launches(links: pl.DataFrame) -> pl.DataFrame:
    if links.is_empty():
        return pl.DataFrame(schema={"from": pl.UInt32, "to": pl.UInt32})
    return links.filter(pl.col("why") == "launch").select("from", "to")


def _with_python_parent(ops: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    if ops.is_empty() or "python_parent" in ops.columns:
        return ops
    is_python = events["kind"] == "python"
    if not is_python.any():
        return ops
    return ops.with_columns(ancestors(events, is_python).gather(ops["event"]).alias("python_parent"))


def _with_launching_op(kernels: pl.DataFrame, links: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Each kernel with the op that encloses its launch; else the one that the reader named."""
    launches = _launches(links)
    if kernels.is_empty() or launches.is_empty():
        return kernels
    enclosing = ancestors(events, events["kind"] == "op")
    by_kernel = (
        launches.select(event="to", found=take(enclosing, launches["from"]))
        .drop_nulls()
        .unique("event", keep="first")
    )
    joined = kernels.join(by_kernel, on="event", how="left", maintain_order="left")
    named = pl.col("op") if "op" in kernels.columns else pl.lit(None, dtype=pl.UInt32)
    return joined.with_columns(op=pl.coalesce(pl.col("found"), named.cast(pl.UInt32))).drop("found")
