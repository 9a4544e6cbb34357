"""Spans written in two halves: B and E on a thread, b and e (or S and F) of an asynchronous id."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.formats.chrome.tracks import TrackTable
from stepscope.lazy import dataclass
from stepscope.native.spans.begin_end import NO_NAME, pair
from stepscope.native.spans.lanes import lanes
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest
from stepscope.trace.problems import Problems, problem

_BEGINS = [ord("b"), ord("S")]
_ENDS = [ord("e"), ord("F")]
_STEPS = [ord("n"), ord("T"), ord("p")]


@dataclass(frozen=True)
class Spans:
    """Events in the order of the file; rows that were second halves are dropped, and `owners` has their first halves."""

    events: pl.DataFrame  # row, ph, name, category, track, start, dur
    owners: pl.DataFrame  # event (the row of a second half), first (the row that took it over)

    def placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with rows of the file in `event` replaced by places among these events."""
        place = pl.int_range(len(self.events), dtype=pl.UInt32, eager=True)
        places = pl.DataFrame({"event": self.events["row"], "place": place})
        owned = frame.join(self.owners, on="event", how="left", maintain_order="left")
        owned = owned.with_columns(event=pl.coalesce("first", "event")).drop("first")
        found = owned.join(places, on="event", how="inner", maintain_order="left")
        return found.with_columns(event="place").drop("place")


def whole_spans(found: JsonEvents, table: TrackTable) -> Spans:
    """Join the halves of spans. Asynchronous ones get lanes of their own, for they may overlap anything."""
    nobody = pl.DataFrame(schema={"event": pl.UInt32, "first": pl.UInt32})
    spans = Spans(found.events.with_row_index("row"), nobody)
    spans = _join_thread_halves(spans, found.problems)
    return _join_async_halves(spans, table, found.asyncs, found.problems)


def _join_thread_halves(spans: Spans, problems: Problems) -> Spans:
    halves = spans.events.filter(pl.col("ph").is_in([ord("B"), ord("E")]))
    if halves.is_empty():
        return spans
    ordered = halves.sort("track", "start", maintain_order=True)
    return _joined(spans, ordered, ordered["track"], ordered["ph"] == ord("B"), problems)


def _join_async_halves(spans: Spans, table: TrackTable, ids: pl.DataFrame, problems: Problems) -> Spans:
    is_async = pl.col("ph").is_in(_BEGINS + _ENDS + _STEPS)
    halves = spans.events.filter(is_async)
    if halves.is_empty():
        return spans
    group = halves.join(ids, left_on="row", right_on="event", how="left", maintain_order="left")
    group = group.with_columns(process=_processes(group["track"], table))
    key = (
        pl.struct("category", "id", pl.when(pl.col("id").is_null()).then(pl.col("track")))
        .rank("dense")
        .cast(pl.UInt32)
    )
    group = group.with_columns(key=key).sort("key", "start", maintain_order=True)
    paired = group.filter(pl.col("ph").is_in(_BEGINS + _ENDS))
    joined = _joined(spans, paired, paired["key"], paired["ph"].is_in(_BEGINS), problems)
    return _in_lanes(joined, group.select("row", "process"), table)


def _processes(track: pl.Series, table: TrackTable) -> pl.Series:
    """The first track of each track's process stands for the process."""
    first: dict[object, int] = {}
    numbers = [first.setdefault(pid, number) for number, (pid, _) in enumerate(table.scanned)]
    return pl.Series("process", numbers, dtype=pl.UInt32).gather(track)


def _joined(
    spans: Spans, halves: pl.DataFrame, key: pl.Series, is_begin: pl.Series, problems: Problems
) -> Spans:
    """Match halves that are sorted by key and time; the first half takes the duration, the second goes."""
    name = halves["name"].to_physical().fill_null(NO_NAME).cast(pl.UInt32)
    phase = pl.select(pl.when(is_begin).then(1).otherwise(2)).to_series().cast(pl.UInt8)
    begin, end, open_begins, loose_ends = pair(buffer(key), buffer(phase), buffer(name))
    first, second = series("first", begin, pl.UInt32), series("second", end, pl.UInt32)
    row, start = halves["row"], halves["start"]
    matched = pl.DataFrame(
        {
            "row": row.gather(first),
            "second": row.gather(second),
            "length": start.gather(second) - start.gather(first),
        }
    )
    unfinished = row.gather(series("open", open_begins, pl.UInt32))
    last = int((spans.events["start"] + spans.events["dur"]).max() or 0)
    still_open = pl.DataFrame({"row": unfinished}).with_columns(second=pl.lit(None, dtype=pl.UInt32))
    still_open = still_open.with_columns(
        length=last - spans.events["start"].gather(spans.events["row"].search_sorted(unfinished))
    )
    _note(problems, len(unfinished), len(loose_ends))
    ends = halves.filter(~is_begin)["row"]
    events = spans.events.join(
        pl.concat([matched, still_open]).select("row", "length"), on="row", how="left", maintain_order="left"
    )
    events = events.with_columns(dur=pl.coalesce("length", "dur")).drop("length")
    events = events.filter(~events["row"].is_in(ends.implode()))
    owners = pl.concat([spans.owners, matched.select(event="second", first="row")])
    return Spans(events, owners)


def _note(problems: Problems, unfinished: int, loose: int) -> None:
    if unfinished:
        problems.add(
            problem(
                "unfinished-events",
                "{count} events have a start and no end; they last to the end of the trace here.",
                count=unfinished,
            )
        )
    if loose:
        problems.add(
            problem(
                "unmatched-ends", "{count} events have an end and no start; they were left out.", count=loose
            )
        )


def _in_lanes(spans: Spans, group: pl.DataFrame, table: TrackTable) -> Spans:
    """Move asynchronous events to lanes in which nothing overlaps, by process and category."""
    mine = spans.events.join(group, on="row", how="inner", maintain_order="left").sort(
        "start", maintain_order=True
    )
    moved: list[pl.DataFrame] = []
    for (_, category), rows in mine.group_by("process", "category", maintain_order=True):
        found = lanes(buffer(rows["start"]), buffer(rows["start"] + rows["dur"].clip(lower_bound=0)))
        lane = series("lane", found, pl.UInt32)
        count = take_largest(lane) + 1
        label = f"async {category or ''}".strip()
        like = int(rows["process"][0])
        tracks = [table.add(like, what="derived", thread=f"{label} {n}") for n in range(count)]
        new = pl.Series("lane", tracks, dtype=pl.UInt32).gather(lane)
        moved.append(pl.DataFrame({"row": rows["row"], "lane": new}))
    if not moved:
        return spans
    events = spans.events.join(pl.concat(moved), on="row", how="left", maintain_order="left")
    return replace(spans, events=events.with_columns(track=pl.coalesce("lane", "track")).drop("lane"))
