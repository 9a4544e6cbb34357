"""A memory snapshot as a draft of a trace.

`memory` has the history: what was allocated and released, with the totals behind it. They are counted backwards from the
segments, which are the state at the end, so they are right even where the history does not reach back to the beginning.
`blocks` has the state at the end: every block of every segment. `frames` has the stacks that both name.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.memory_snapshot import FORMAT
from stepscope.formats.memory_snapshot.columns import Packed, unpack
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.native.checks import ROW_LIMIT
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problems, problem
from stepscope.trace.schema import DeviceKind, Kind, Text, TrackUse
from stepscope.trace.snapshot import ROUNDED_TO
from stepscope.trace.trace import TraceInfo

OUT_OF_MEMORY = "out of memory"
SNAPSHOT = "snapshot"
_USUAL = (0, 0.0, -1, 1, False, "", "{}")  # values of settings that are the default
_LATEST_US = 2**62 // 1000
_CHANGES_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_CHANGES_ALLOCATED = {"alloc": 1, "free_completed": -1}
_SHOWN = (*_CHANGES_RESERVED, "oom", "user_defined")
_EVENTS = {
    "device": pl.UInt32, "action": pl.String, "address": pl.UInt64, "bytes": pl.Int64, "stream": pl.UInt64,
    "time": pl.Int64, "stack": pl.UInt32,
}  # fmt: skip
_SEGMENTS = {
    "address": pl.UInt64, "bytes": pl.Int64, "stream": pl.UInt64, "device": pl.Int64, "kind": pl.String,
    "expandable": pl.UInt8, "stack": pl.UInt32,
}  # fmt: skip
_BLOCKS = {
    "segment": pl.UInt32, "address": pl.UInt64, "bytes": pl.Int64, "requested": pl.Int64, "state": pl.String,
    "stack": pl.UInt32,
}  # fmt: skip
_NOTES = {"name": pl.String, "begins": pl.UInt8, "device": pl.Int64, "time": pl.Int64}
ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


def read(source: Source, progress: Progress) -> Draft:
    """The snapshot of a process: all its devices."""
    packed = unpack(source, progress)
    events, segments = _rows(packed, "event", _EVENTS), _rows(packed, "segment", _SEGMENTS)
    if events.is_empty() and segments.is_empty():
        raise UnreadableFile(
            f"{source.path} is a memory snapshot without segments and events: nothing was allocated yet.",
            fix="Write it after, or at, the moment in question: torch.cuda.memory._dump_snapshot('snapshot.pickle')",
        )
    if len(events) >= ROW_LIMIT:
        raise UnreadableFile(f"{source.path} holds {len(events):,} events, more than can be numbered.")
    draft = _make_draft(packed, events, segments, source.path)
    _note_problems(draft, packed, events)
    for each in source.problems.all():
        draft.problems.add(each)
    return draft


def _rows(packed: Packed, name: str, schema: dict[str, Any]) -> pl.DataFrame:
    found = packed.table(name)
    return found.select(list(schema)) if len(found) else pl.DataFrame(schema=schema)


def _make_draft(packed: Packed, events: pl.DataFrame, segments: pl.DataFrame, path: str) -> Draft:
    events, zero = _timed(events)
    blocks = _make_blocks(_rows(packed, "block", _BLOCKS), segments)
    events = _with_exact_bytes(events.with_row_index("place"), blocks)
    memory = _make_memory(events, blocks, segments)
    devices = sorted({*events["device"].unique(), *segments["device"].unique()})
    spans = _make_spans(_rows(packed, "note", _NOTES), zero, memory)
    shown = _make_events(memory, spans, devices)
    return Draft(
        info=_make_info(packed, path, zero * 1000, devices, memory, events),
        events=shown.drop("device"),
        tracks=_make_tracks(devices),
        memory=memory.filter(pl.col("bytes") != 0).drop("is_shown"),
        blocks=_with_times(blocks, memory),
        frames=_make_frames(packed),
    )


def _timed(events: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Events with time_ns from the first on; where a version wrote no times, their order is the time."""
    time = pl.col("time").clip(0, _LATEST_US)
    zero = int(events.select(time.filter(time > 0).min()).item() or 0)
    ns = (time - zero).clip(lower_bound=0) * 1000 if zero else pl.int_range(pl.len(), dtype=pl.Int64)
    return events.with_columns(time_ns=ns), zero


def _make_blocks(blocks: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    owners = segments.with_row_index("segment").select(
        "segment",
        "device",
        "stream",
        segment_address="address",
        segment_bytes="bytes",
        segment_kind=pl.when(pl.col("expandable") > 0).then(pl.lit("expandable")).otherwise("kind"),
    )
    return blocks.join(owners, on="segment", how="left", maintain_order="left")


def _with_exact_bytes(events: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """History has the bytes that were asked for. The block that an address still has says what they became;
    for all others it is the next multiple of 512."""
    rounded = (pl.col("bytes") + ROUNDED_TO - 1) // ROUNDED_TO * ROUNDED_TO
    events = events.with_columns(requested="bytes", rounded=rounded)
    live = blocks.filter(pl.col("state").is_in(ACTIVE)).select(
        "address", device=pl.col("device").cast(pl.UInt32), exact="bytes"
    )
    last = (
        events.filter(pl.col("action") == "alloc")
        .select("device", "address", "place")
        .unique(["device", "address"], keep="last", maintain_order=True)
    )
    exact = last.join(live.unique(["device", "address"]), on=["device", "address"]).select("place", "exact")
    joined = events.join(exact, on="place", how="left", maintain_order="left")
    return joined.with_columns(
        bytes=pl.when(pl.col("action").is_in(list(_CHANGES_ALLOCATED)))
        .then(pl.coalesce("exact", "rounded"))
        .otherwise("bytes")
    ).drop("exact", "rounded")


def _make_memory(events: pl.DataFrame, blocks: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """The history with signed bytes and the totals behind each event."""
    active = blocks.filter(pl.col("state").is_in(ACTIVE))
    allocated = dict(active.group_by("device").agg(pl.col("bytes").sum()).iter_rows())
    reserved = dict(segments.group_by("device").agg(pl.col("bytes").sum()).iter_rows())
    signed = events.with_columns(
        bytes=pl.col("bytes") * _signs(_CHANGES_ALLOCATED),
        mapped=pl.col("bytes") * _signs(_CHANGES_RESERVED),
    )
    device = pl.col("device").cast(pl.Int64)
    return signed.select(
        device=pl.col("device").cast(pl.Int32),
        device_kind=pl.lit("gpu", dtype=DeviceKind),
        stream=_stream(),
        time_ns="time_ns",
        bytes="bytes",
        requested="requested",
        address=pl.when(pl.col("action") != "oom").then("address"),
        total_allocated=_behind("bytes") + device.replace_strict(allocated, default=0, return_dtype=pl.Int64),
        total_reserved=_behind("mapped") + device.replace_strict(reserved, default=0, return_dtype=pl.Int64),
        action=pl.col("action").cast(Text),
        stack="stack",
        is_shown=pl.col("action").is_in(_SHOWN),
    )


def _signs(changes: dict[str, int]) -> pl.Expr:
    return pl.col("action").replace_strict(changes, default=0, return_dtype=pl.Int64)


def _behind(name: str) -> pl.Expr:
    """What all later events add, to be taken from the state at the end."""
    total = pl.col(name)
    return total.cum_sum().over("device") - total.sum().over("device")


def _stream() -> pl.Expr:
    return pl.col("stream").clip(upper_bound=2**62).cast(pl.Int64)


def _make_spans(notes: pl.DataFrame, zero: int, memory: pl.DataFrame) -> pl.DataFrame:
    """Annotations (record_function and the like): each beginning with the next end of its name; an open one lasts to the end."""
    end = int(memory["time_ns"].max() or 0) if len(memory) else 0  # type: ignore[arg-type]
    ns = (pl.col("time").clip(0, _LATEST_US) - zero).clip(lower_bound=0) * 1000
    timed = notes.with_columns(at=ns, number=pl.int_range(pl.len()).over("name", "device", "begins"))
    begins = timed.filter(pl.col("begins") > 0)
    ends = timed.filter(pl.col("begins") == 0).select("name", "device", "number", stop="at")
    joined = begins.join(ends, on=["name", "device", "number"], how="left", maintain_order="left")
    stop = pl.max_horizontal(pl.col("stop").fill_null(end), "at")
    return joined.select("device", "name", start_ns="at", dur_ns=stop - pl.col("at"))


def _make_events(memory: pl.DataFrame, spans: pl.DataFrame, devices: list[int]) -> pl.DataFrame:
    """What is shown on tracks: annotations, what changed segments, failures, and the snapshot itself."""
    end = int(memory["time_ns"].max() or 0) if len(memory) else 0  # type: ignore[arg-type]
    moments = memory.filter("is_shown").select(
        track=2 * pl.col("device").cast(pl.UInt32),
        device="device",
        name=pl.col("action").cast(pl.String).replace({"oom": OUT_OF_MEMORY}),
        kind=pl.lit("memory"),
        start_ns="time_ns",
        dur_ns=pl.lit(0, dtype=pl.Int64),
    )
    annotations = spans.select(
        track=2 * pl.col("device").cast(pl.UInt32) + 1,
        device=pl.col("device").cast(pl.Int32),
        name="name",
        kind=pl.lit("span"),
        start_ns="start_ns",
        dur_ns="dur_ns",
    )
    last = pl.DataFrame(
        {"track": [2 * each for each in devices], "device": devices, "start_ns": [end] * len(devices)},
        schema={"track": pl.UInt32, "device": pl.Int32, "start_ns": pl.Int64},
    ).select(
        "track",
        "device",
        name=pl.lit(SNAPSHOT),
        kind=pl.lit("instant"),
        start_ns="start_ns",
        dur_ns=pl.lit(0, dtype=pl.Int64),
    )
    return pl.concat([moments, annotations, last]).with_columns(
        name=pl.col("name").cast(Text),
        kind=pl.col("kind").cast(Kind),
        source_category=pl.lit("memory", dtype=Text),
    )


def _make_tracks(devices: list[int]) -> pl.DataFrame:
    rows = [
        {
            "id": 2 * each + place,
            "process": f"device {each}",
            "thread": thread,
            "device_kind": "cpu",
            "what": "host",
        }
        for each in devices
        for place, thread in enumerate(("allocator", "annotations"))
    ]
    return pl.DataFrame(
        rows,
        schema={
            "id": pl.UInt32,
            "process": pl.String,
            "thread": pl.String,
            "device_kind": DeviceKind,
            "what": TrackUse,
        },
    )


def _with_times(blocks: pl.DataFrame, memory: pl.DataFrame) -> pl.DataFrame:
    """The blocks with the time of their allocation, where the history reaches back to it."""
    allocated = (
        memory.filter(pl.col("bytes") > 0)
        .select("device", "address", "time_ns", came=pl.int_range(pl.len(), dtype=pl.UInt32))
        .unique(["device", "address"], keep="last", maintain_order=True)
    )
    blocks = blocks.with_columns(pl.col("device").cast(pl.Int32), stream=_stream())
    is_active = pl.col("state").is_in(ACTIVE)
    joined = blocks.join(allocated, on=["device", "address"], how="left", maintain_order="left")
    return joined.select(
        "device", "stream",
        segment="segment_address",
        segment_bytes="segment_bytes",
        segment_kind=pl.col("segment_kind").cast(Text),
        address="address",
        bytes="bytes",
        requested="requested",
        state=pl.col("state").cast(Text),
        stack="stack",
        time_ns=pl.when(is_active).then("time_ns"),
    )  # fmt: skip


def _make_frames(packed: Packed) -> pl.DataFrame:
    stacks, frames = packed.table("stack"), packed.table("frame")
    if stacks.is_empty() or frames.is_empty():
        return pl.DataFrame()
    return stacks.select(
        "stack",
        "depth",
        function=frames["name"].gather(stacks["frame"]).cast(Text),
        file=frames["file"].gather(stacks["frame"]).cast(Text),
        line=frames["line"].gather(stacks["frame"]).cast(pl.Int32),
    )


def _make_info(
    packed: Packed, path: str, base: int, devices: list[int], memory: pl.DataFrame, events: pl.DataFrame
) -> TraceInfo:
    failed = events.filter(pl.col("action") == "oom")
    return TraceInfo(
        path=path,
        format=FORMAT.name,
        framework="pytorch",
        base_unix_ns=base,
        devices=[{"id": each} for each in devices],
        capture_options={
            "allocator_settings": {
                name: value
                for name, value in packed.header.get("settings", {}).items()
                if value not in _USUAL
            },
            "out_of_memory": failed.select(
                "device", "time_ns", "stack", asked="requested", device_free="address"
            ).to_dicts(),
        },
    )


def _note_problems(draft: Draft, packed: Packed, events: pl.DataFrame) -> None:
    damaged = int(packed.header.get("damaged") or 0)
    if damaged:
        draft.problems.add(
            problem(
                "damaged-events",
                "{count} entries are not what PyTorch writes; they were left out.",
                count=damaged,
            )
        )
    _note_history(draft.problems, draft, events)


def _note_history(problems: Problems, draft: Draft, events: pl.DataFrame) -> None:
    if events.is_empty():
        problems.add(
            problem("no-history", "The snapshot holds the state at its end alone, without any event before.")
        )
    elif draft.frames.is_empty():
        problems.add(problem("no-allocation-stacks", "No allocation has a stack, so no line can be named."))
