"""A trace as Chrome trace JSON: Perfetto opens it, and our own reader gets the same tables back.

What it looks like, one event a line:

    {"stepscope": {"form": 1, "shift_ns": …, "info": {…}, "problems": […], "tracks": […], "threads": [[tid, track, lane], …]},
     "displayTimeUnit": "ns", "baseTimeNanoseconds": …, "traceEvents": [
       {"ph": "M", …}                        names and order of processes and threads
       {"ph": "X" or "i", "name", "cat" = source_category, "pid", "tid", "ts", "dur",
        "args": {"stepscope": {"id", "kind", "role", "step", "ops": {…}, "kernels": {…}, …}, everything else the file said}}
       {"ph": "s" and "f", "id": from × 2³² + to, "name" = "cat" = why}
       {"ph": "C", "tid", "args": {"value": …}}
     ], "stepscopeTables": {"modules": […], "memory": […], …}}

Times are µs with three decimals, so exact to the nanosecond, and begin at 0: `shift_ns` was taken off every start, and
`baseTimeNanoseconds` is the trace's base plus the shift. Events are in the order of their ids, whatever their lane.
`pid` and `tid` are made up, each tid for one lane of one track: `threads` says which. Lane 0 is the track; lanes above it
hold the events that Perfetto would drop (see `chrome_lanes`), and giving them their track back undoes the move.
In `args.stepscope` each table's row of that event is under the table's name (an array where there are several); rows
of no event, and `modules`, come last. Infinite and undefined numbers are strings. Flow events follow the event they start
or end at, so that they bind to it and not to a child that begins at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.own_export import threads
from stepscope.formats.own_export.json_text import members, microseconds, quoted, row_object, value_of
from stepscope.formats.own_export.lanes import lanes
from stepscope.trace.json_text import repaired_json
from stepscope.trace.trace import Trace

FORM = 1
EVENTS_PER_CHUNK = 1 << 17
# The tables whose rows belong to an event; its number is implied by where the row stands.
EVENT_TABLES = ("ops", "kernels", "copies", "memory", "collectives")
RESERVED = "stepscope"
_INSTANT_KINDS = ("instant", "memory", "counter")


def chrome_text(trace: Trace) -> Iterator[str]:
    """The export in pieces, each a few tens of megabytes at most."""
    lane = lanes(trace.events)
    in_use = trace.events.select("track", lane=lane).unique()
    found = threads.threads(trace.tracks, in_use)
    shift = first_time(trace)
    yield _head(trace, found, shift)
    yield from content(trace, lane, found, shift)
    yield _tail(trace)


def content(
    trace: Trace, lane: pl.Series, found: list[threads.Thread], shift: int, flows: str = ""
) -> Iterator[str]:
    """The trace's events, from the names of its threads on; `flows` is put behind the names of its flows."""
    yield ",\n".join(threads.metadata(found))
    where = threads.frame(found)
    for first in range(0, len(trace.events), EVENTS_PER_CHUNK):
        chunk = trace.events.slice(first, EVENTS_PER_CHUNK).with_columns(
            lane=lane.slice(first, EVENTS_PER_CHUNK)
        )
        yield from _joined(_event_lines(trace, _placed(chunk, where, shift), flows))
    for counters in trace.counters.iter_slices(EVENTS_PER_CHUNK):
        yield from _joined(_counter_lines(counters, where, shift))


def _joined(lines: pl.Series) -> Iterator[str]:
    if len(lines):
        yield ",\n"
        yield str(lines.str.join(",\n").item())


def first_time(trace: Trace) -> int:
    """When the first event or counter is."""
    times = [trace.events["start_ns"].min(), trace.counters["time_ns"].min()]
    return min((int(time) for time in times if isinstance(time, int)), default=0)


def _head(trace: Trace, found: list[threads.Thread], shift: int) -> str:
    reserved = {
        "form": FORM,
        "shift_ns": shift,
        "info": msgspec.to_builtins(trace.info),
        "problems": trace.problems.to_dicts(),
        "tracks": [_without_nulls(row) for row in trace.tracks.to_dicts()],
        "threads": [(each.tid, each.track, each.lane) for each in found],
    }
    base = trace.info.base_unix_ns + shift
    return (
        f'{{"{RESERVED}":{msgspec.json.encode(reserved).decode()},\n'
        f'"displayTimeUnit":"ns","baseTimeNanoseconds":{base},"traceEvents":[\n'
    )


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _placed(chunk: pl.DataFrame, where: pl.DataFrame, shift: int) -> pl.DataFrame:
    """The events with pid, tid and their time as the export writes it."""
    placed = chunk.join(where, on=["track", "lane"], how="left", maintain_order="left")
    place = pl.concat_str(pl.lit(',"pid":'), "pid", pl.lit(',"tid":'), "tid", pl.lit(',"ts":'))
    return placed.with_columns(place=pl.concat_str(place, microseconds(pl.col("start_ns") - shift)))


def _event_lines(trace: Trace, placed: pl.DataFrame, flows: str) -> pl.Series:
    first, last = int(placed["id"][0]), int(placed["id"][-1])
    texts = placed
    for table in EVENT_TABLES:
        rows = trace.tables[table].filter(pl.col("event").is_between(first, last))
        texts = _with_text(texts, table, _row_texts(table, rows))
    texts = _with_text(texts, "cold", _cold_texts(trace, first, last))
    texts = _with_text(texts, "starts", _flow_ends(trace.links, placed, "from", '{"ph":"s"', flows))
    texts = _with_text(texts, "ends", _flow_ends(trace.links, placed, "to", '{"ph":"f","bp":"e"', flows))
    is_instant = (pl.col("dur_ns") == 0) & pl.col("kind").cast(pl.String).is_in(_INSTANT_KINDS)
    duration = pl.concat_str(pl.lit('{"ph":"X","dur":'), microseconds(pl.col("dur_ns")))
    line = [
        pl.when(is_instant).then(pl.lit('{"ph":"i","s":"t"')).otherwise(duration),
        pl.concat_str(pl.lit(',"name":'), quoted(pl.col("name"))),
        pl.concat_str(pl.lit(',"cat":'), quoted(pl.col("source_category"))),
        pl.col("place"),
        pl.lit(f',"args":{{"{RESERVED}":{{"id":'),
        pl.col("id").cast(pl.String),
        pl.concat_str(pl.lit(',"kind":"'), pl.col("kind").cast(pl.String), pl.lit('"')),
        pl.concat_str(pl.lit(',"role":"'), pl.col("role").cast(pl.String), pl.lit('"')),
        pl.concat_str(pl.lit(',"step":'), pl.col("step").cast(pl.String)),
        *EVENT_TABLES,
        pl.lit("}"),
        pl.col("cold"),
        pl.lit("}}"),
        pl.col("starts"),
        pl.col("ends"),
    ]
    return texts.select(pl.concat_str(line, ignore_nulls=True)).to_series()


def _with_text(placed: pl.DataFrame, name: str, found: pl.DataFrame | None) -> pl.DataFrame:
    """The events with a further column of text, null where there is none. `found` has event and text."""
    if found is None or found.is_empty():
        return placed.with_columns(pl.lit(None, pl.String).alias(name))
    named = found.select(pl.col("event").cast(pl.UInt32).alias("id"), pl.col("text").alias(name))
    return placed.join(named, on="id", how="left", maintain_order="left")


def _row_texts(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """`,"table":{…}` for each event that has a row, an array of them where it has several."""
    columns = {name: dtype for name, dtype in rows.schema.items() if name != "event"}
    texts = rows.select("event", text=row_object(columns))
    grouped = texts.group_by("event", maintain_order=True).agg(pl.col("text").str.join(","), count=pl.len())
    several = pl.concat_str(pl.lit("["), "text", pl.lit("]"))
    value = pl.when(pl.col("count") == 1).then(pl.col("text")).otherwise(several)
    return grouped.select("event", text=pl.concat_str(pl.lit(f',"{table}":'), value))


def _cold_texts(trace: Trace, first: int, last: int) -> pl.DataFrame | None:
    """`,"name":value` for every other argument of each event."""
    found = []
    for frame in trace.cold.values():
        rows = frame.filter(pl.col("event").is_between(first, last))
        texts = _one_a_row(rows) if "key" in rows.columns else _many_a_row(rows)
        found.append(texts.with_columns(pl.col("event").cast(pl.UInt32)))
    if not found:
        return None
    return pl.concat(found).group_by("event", maintain_order=True).agg(pl.col("text").str.join(""))


def _one_a_row(rows: pl.DataFrame) -> pl.DataFrame:
    """Of a frame with the columns key and value."""
    key = pl.col("key").cast(pl.String)
    name = pl.when(key == RESERVED).then(pl.lit(f"{RESERVED} ")).otherwise(key)
    value = value_of(pl.col("value"), rows.schema["value"])
    return rows.select("event", text=pl.concat_str(pl.lit(","), quoted(name), pl.lit(":"), value))


def _many_a_row(rows: pl.DataFrame) -> pl.DataFrame:
    """Of a frame with a column for each argument, or with all of them as JSON."""
    columns = {name: dtype for name, dtype in rows.schema.items() if name not in ("event", "json", RESERVED)}
    rest = _valid_members(rows["json"]) if "json" in rows.columns else pl.Series([""], dtype=pl.String)
    return rows.select("event", text=pl.concat_str(members(columns), rest))


_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def _valid_members(texts: pl.Series) -> pl.Series:
    """`,"name":value` out of JSON objects, repaired where the file was broken."""
    return pl.Series([_members_of(text) for text in texts.cast(pl.Binary)], dtype=pl.String)


def _members_of(text: bytes | None) -> str:
    if text is None:
        return ""
    inside = _inside(text)
    return f",{inside}".replace(f'"{RESERVED}":', f'"{RESERVED} ":') if inside else ""


def _inside(text: bytes) -> str:
    """The text between the braces of the object; that of an object made of it where it is none."""
    try:
        _check_json(text)
        whole = text.decode()
    except (msgspec.DecodeError, UnicodeError):
        whole = ""
    if whole.lstrip()[:1] != "{":
        value = repaired_json(text)
        value = (
            {"args": text.decode(errors="replace") if value is None else value}
            if not isinstance(value, dict)
            else value
        )
        whole = msgspec.json.encode(value).decode()
    return whole.strip()[1:-1].strip()


def _flow_ends(
    links: pl.DataFrame, placed: pl.DataFrame, end: str, opening: str, suffix: str
) -> pl.DataFrame:
    """The flow events that follow each event, as text."""
    first, last = int(placed["id"][0]), int(placed["id"][-1])
    here = links.filter(pl.col(end).is_between(first, last)).with_columns(event=end)
    pair = pl.col("from").cast(pl.Int64) * 2**32 + pl.col("to")
    why = pl.col("why").cast(pl.String) + suffix
    named = [
        pl.lit(f'{opening},"id":'),
        pair,
        pl.lit(',"name":"'),
        why,
        pl.lit('","cat":"'),
        why,
        pl.lit('"'),
    ]
    with_place = here.join(
        placed.select(event="id", place="place"), on="event", how="left", maintain_order="left"
    )
    line = pl.concat_str(pl.lit(",\n"), *named, "place", pl.lit("}"))
    return (
        with_place.select("event", text=line)
        .group_by("event", maintain_order=True)
        .agg(pl.col("text").str.join(""))
    )


def _counter_lines(counters: pl.DataFrame, where: pl.DataFrame, shift: int) -> pl.Series:
    placed = counters.join(where.filter(pl.col("lane") == 0), on="track", how="left", maintain_order="left")
    line = pl.concat_str(
        pl.lit('{"ph":"C","name":'),
        quoted(pl.col("thread_name")),
        pl.lit(',"pid":'),
        "pid",
        pl.lit(',"tid":'),
        "tid",
        pl.lit(',"ts":'),
        microseconds(pl.col("time_ns") - shift),
        pl.lit(',"args":{"value":'),
        value_of(pl.col("value"), pl.Float64()).fill_null("null"),
        pl.lit("}}"),
    )
    return placed.select(line).to_series()


def _tail(trace: Trace) -> str:
    """What belongs to no event."""
    tables = {
        name: trace.tables[name].filter(pl.col("event").is_null()).drop("event") for name in EVENT_TABLES
    }
    tables["modules"] = trace.modules
    texts = {
        name: rows.select(row_object(dict(rows.schema))).to_series().to_list()
        for name, rows in tables.items()
    }
    written = [f'"{name}":[{",".join(rows)}]' for name, rows in texts.items() if rows]
    return f'\n],"{RESERVED}Tables":{{{",".join(written)}}}}}\n'
