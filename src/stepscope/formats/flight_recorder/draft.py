"""A dump as a draft of a trace: one track for each process group, one span for each collective."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.flight_recorder import FORMAT
from stepscope.formats.flight_recorder.document import Dump, Frame, Record, decode
from stepscope.formats.flight_recorder.own_frames import own_frame
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.native.spans.lanes import lanes
from stepscope.trace.columns import buffer, series
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problems, problem
from stepscope.trace.schema import TABLES, Kind, Role, Text
from stepscope.trace.trace import TraceInfo

# The cold table with what the tables of a trace have no columns for.
DETAILS = "flight_recorder"
_DEFAULT = "default_pg"
_PEERS = re.compile(r"^(\w+)(?: (\d{1,7})(->|<-)(\d{1,7}))?")
_LATEST = 1 << 62
_ROW: dict[str, Any] = {
    "group": pl.String,
    "title": pl.String,
    "backend": pl.String,
    "name": pl.String,
    "from_rank": pl.Int64,
    "to_rank": pl.Int64,
    "is_p2p": pl.Boolean,
    "sequence": pl.Int64,
    "record": pl.Int64,
    "state": pl.String,
    "is_pending": pl.Boolean,
    "input_sizes": pl.String,
    "output_sizes": pl.String,
    "dtypes": pl.String,
    "elements": pl.Int64,
    "elements_out": pl.Int64,
    "created": pl.Int64,
    "started": pl.Int64,
    "completed": pl.Int64,
    "timeout_ms": pl.Int64,
    "thread": pl.String,
    "function": pl.String,
    "place": pl.String,
    "stack": pl.String,
}
_KEPT = [name for name in _ROW if name not in ("name", "title", "elements", "elements_out")]


def read(source: Source, progress: Progress) -> Draft:
    """The collectives that the buffer held when it was dumped."""
    dump = decode(source)
    progress(source.size())
    rows = pl.DataFrame([_describe(each) for each in dump.records], schema=_ROW, orient="row")
    draft = _make_draft(rows, dump, source.path)
    _note_problems(draft.problems, dump)
    for each in source.problems.all():
        draft.problems.add(each)
    return draft


def _describe(record: Record) -> tuple[Any, ...]:
    """One row."""
    backend, _, words = record.profiling_name.rpartition(":")
    name, origin, target = _peers(words)
    group, desc = _group_of(record)
    is_p2p = record.is_p2p or origin is not None
    wanted = record.p2p_seq_id if is_p2p else record.collective_seq_id
    sequence = next(
        (each for each in (wanted, record.seq_id, record.op_id) if each is not None), record.record_id
    )
    own = own_frame(record.frames)
    return (
        group,
        f"{desc} ({group})" if desc and desc != "undefined" else group,
        backend,
        name,
        origin,
        target,
        is_p2p,
        sequence,
        record.record_id,
        record.state,
        _is_pending(record),
        _compact(record.input_sizes),
        _compact(record.output_sizes),
        _dtypes(record),
        _count(record.input_sizes),
        _count(record.output_sizes),
        _moment(record.time_created_ns),
        _moment(record.time_discovered_started_ns),
        _moment(_completed(record)),
        record.timeout_ms,
        str(record.thread_name or record.thread_id or "") or None,
        own.name if own is not None else None,
        _place(own),
        "\n".join(f"{each.name} ({each.filename}:{each.line})" for each in record.frames) or None,
    )


def _peers(words: str) -> tuple[str, int | None, int | None]:
    """`send 1->2` and `recv 2<-1` as name, source and target, by their numbers in the group."""
    found = _PEERS.match(words)
    if found is None:
        return words or "(unnamed)", None, None
    name, first, way, last = found.groups()
    if way is None:
        return name, None, None
    return (name, int(first), int(last)) if way == "->" else (name, int(last), int(first))


def _group_of(record: Record) -> tuple[str, str]:
    found = record.process_group
    if isinstance(found, list | tuple) and found:
        return str(found[0]), str(found[1]) if len(found) > 1 else ""
    return str(record.pg_id), ""


def _is_pending(record: Record) -> bool:
    """Gloo has no states beyond `scheduled`: a call that ended is retired."""
    return record.state != "completed" and not record.retired


def _completed(record: Record) -> int | None:
    if record.duration_ms is not None and record.time_discovered_started_ns:
        return record.time_discovered_started_ns + round(min(max(record.duration_ms, 0), 1e12) * 1e6)
    return record.time_discovered_completed_ns


def _moment(value: int | None) -> int | None:
    return value if value is not None and 0 < value < _LATEST else None


def _compact(sizes: list[Any]) -> str:
    return ", ".join(str(each).replace(" ", "") for each in sizes)[:1000]


def _dtypes(record: Record) -> str:
    return ", ".join(dict.fromkeys(str(each) for each in (*record.input_dtypes, *record.output_dtypes)))


def _count(sizes: list[Any]) -> int | None:
    """Elements of all tensors; None for what no tensor has."""
    try:
        found = sum(prod(each) for each in sizes)
    except TypeError:
        return None
    return found if 0 <= found < _LATEST else None


def _place(frame: Frame | None) -> str | None:
    return None if frame is None else f"{frame.filename}:{frame.line}"


def _make_draft(rows: pl.DataFrame, dump: Dump, path: str) -> Draft:
    known = rows.select(pl.min_horizontal(pl.col("created").min(), pl.col("started").min())).item()
    zero = 0 if known is None else int(known)
    last = rows.select(pl.max_horizontal(pl.col("created", "started", "completed").max())).item()
    start = pl.coalesce("started", "created").fill_null(zero)
    # What has not ended is drawn to the end of the dump; what ended at an unknown time is a moment.
    end = pl.coalesce("completed", pl.when("is_pending").then(pl.lit(last)), start)
    rows = rows.with_columns(start=start, end=pl.max_horizontal(start, end)).with_row_index("row")
    rows = _with_lanes(rows)
    tracks = rows.select("group", "title", "lane").unique(["group", "lane"], maintain_order=True)
    tracks = tracks.with_row_index("id")
    rows = rows.join(
        tracks.select("id", "group", "lane"), on=["group", "lane"], how="left", maintain_order="left"
    )
    members = {group.name: str(group.ranks) for group in dump.groups if group.ranks}
    sizes = {group.name: len(group.ranks) for group in dump.groups if group.ranks}
    return Draft(
        info=_make_info(dump, path, zero),
        events=rows.select(
            track=pl.col("id").cast(pl.UInt32),
            name=pl.col("name").cast(Text),
            kind=pl.lit("span", dtype=Kind),
            role=pl.lit("collective", dtype=Role),
            source_category=pl.col("backend").cast(Text),
            start_ns=pl.col("start") - zero,
            dur_ns=pl.col("end") - pl.col("start"),
        ),
        tracks=tracks.select(
            "id",
            process=pl.lit("process groups"),
            thread=pl.format("group {}", "title"),
            device_kind=pl.lit("cpu"),
            what=pl.lit("host"),
            tid="group",
        ),
        collectives=rows.select(
            event="row",
            name=pl.col("name").cast(Text),
            dtype=pl.col("dtypes").cast(Text),
            elements="elements",
            elements_out="elements_out",
            group=pl.col("group").cast(Text),
            group_size=pl.col("group").replace_strict(sizes, default=None, return_dtype=pl.Int32),
            group_ranks=pl.col("group")
            .replace_strict(members, default=None, return_dtype=pl.String)
            .cast(Text),
            sequence="sequence",
        ).select(name for name in TABLES["collectives"] if name not in ("bytes", "peer")),
        cold={DETAILS: rows.select(pl.col("row").alias("event"), *_KEPT)},
    )


def _with_lanes(rows: pl.DataFrame) -> pl.DataFrame:
    """Collectives of one group may overlap: each lane has those that do not."""
    pieces = []
    for _, group in rows.sort("start").group_by("group", maintain_order=True):
        found = lanes(buffer(group["start"]), buffer(group["end"]))
        pieces.append(group.select("row", lane=series("lane", found, pl.UInt32)))
    if not pieces:
        return rows.with_columns(lane=pl.lit(0, dtype=pl.UInt32))
    return rows.join(pl.concat(pieces), on="row", how="left", maintain_order="left")


def _make_info(dump: Dump, path: str, zero: int) -> TraceInfo:
    versions = {"flight_recorder": dump.version, "communication library": dump.library}
    everyone = [group.ranks for group in dump.groups if group.desc == _DEFAULT and group.ranks]
    return TraceInfo(
        path=path,
        format=FORMAT.name,
        framework="pytorch",
        rank=dump.rank,
        world_size=len(everyone[0]) if everyone else None,
        host=dump.host,
        base_unix_ns=zero,
        versions={name: value for name, value in versions.items() if value},
        capture={"process_groups": msgspec.to_builtins(dump.groups)},
    )


def _note_problems(problems: Problems, dump: Dump) -> None:
    if dump.is_cut:
        problems.add(
            problem(
                "truncated", f"The dump ends early; its first {len(dump.records):,} collectives are kept."
            )
        )
    if dump.damaged:
        problems.add(
            problem(
                "damaged-events",
                "{count} entries are not what the flight recorder writes; they were left out.",
                count=dump.damaged,
            )
        )
    if not dump.records:
        problems.add(problem("empty-dump", "The dump has no collectives."))
    elif all(record.frames == [] for record in dump.records):
        problems.add(problem("dump-without-stacks", "None of its collectives has a stack."))
