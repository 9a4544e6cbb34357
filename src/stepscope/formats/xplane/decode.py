"""The events of an XSpace decoded into columns, by one thread per processor, and what is known of them afterwards."""

from __future__ import annotations

import os
import secrets
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.xplane.index import Index
from stepscope.formats.xplane.stats import Stats
from stepscope.lazy import dataclass
from stepscope.native import strings_of_file
from stepscope.native.buffers import Code, full_room, room
from stepscope.native.protobuf import name_table, xspace
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest
from stepscope.trace.schema import Text

# Names that the format has as fields and not as stats.
OCCURRENCES = "num_occurrences"
TOTAL_DURATION = "duration_ps"

_MOST_THREADS = 4
_PART_BYTES = 4 << 20
_LEAST_ROOM = 1024
_SPANS = ("strings", "blobs")
_EVENT_CODES: tuple[Code, ...] = ("I", "I", "q", "q", "B")


@dataclass
class Meaning:
    """What the reader knows of names and lines before it decodes: see `xspace.Decoder.lines` and `.meaning`."""

    line_class: bytes
    line_time: array[int]
    stat_part: bytes
    stat_flag: bytes
    name_class: bytes
    kinds: bytes


@dataclass
class Decoded:
    """Events in the order of the file (`name` is a row of the event names), their stats, and what links them."""

    events: pl.DataFrame
    stats: Stats
    producers: pl.DataFrame
    consumers: pl.DataFrame
    broken: int
    unknown_fields: int
    clamped: int


class NameTable:
    """The names of the file by plane and id; equal stat names share one key."""

    def __init__(self, space: Index) -> None:
        self.odd = secrets.randbits(64) | 1
        own = [*space.stat_names["name"].unique(maintain_order=True), OCCURRENCES, TOTAL_DURATION]
        self.stat_names: list[str] = own
        key_of = {name: key for key, name in reversed(list(enumerate(own)))}
        events, stats = space.event_names, space.stat_names
        keys = pl.Series([key_of[name] for name in stats["name"]], dtype=pl.UInt32)
        self.columns = name_table.table(
            buffer(pl.concat([events["plane"] * 2, stats["plane"] * 2 + 1])),
            buffer(pl.concat([events["id"], stats["id"]])),
            buffer(pl.concat([pl.int_range(len(events), dtype=pl.UInt32, eager=True), keys])),
            self.odd,
        )

    def decoder(self, data: Any) -> xspace.Decoder:
        """A decoder that knows the names."""
        return xspace.Decoder(data, self.columns, self.odd)


def decode(space: Index, known: NameTable, meaning: Meaning) -> Decoded:
    """All events of the file."""
    columns = [full_room(code, space.events)[: space.events] for code in _EVENT_CODES]
    plane = array("I", space.lines["plane"].to_list())
    parts = []
    row = 0
    for chunks in _shares(space.chunks):
        decoder = known.decoder(space.data)
        decoder.lines(plane, meaning.line_class, meaning.line_time)
        decoder.meaning(meaning.stat_part, meaning.stat_flag, meaning.name_class, meaning.kinds)
        decoder.columns(row, columns)
        events = int(chunks["count"].sum())
        jobs = [partial(decoder.chunk, *job) for job in chunks.select("line", "first", "last").iter_rows()]
        parts.append(_Part(space.data, decoder, jobs, events, known.stat_names))
        row += events
    if len(parts) == 1:
        parts[0].run()
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(_Part.run, parts))
    return _joined(columns, parts, known.stat_names)


def decode_stats(space: Index, known: NameTable, spans: pl.DataFrame) -> Stats:
    """Stats that do not belong to events: owner, plane, first and last byte of each."""
    decoder = known.decoder(space.data)
    none = bytes(len(known.stat_names))
    decoder.meaning(none, none, b"", b"")
    columns = [buffer(spans[name]) for name in ("owner", "plane", "first", "last")]
    part = _Part(space.data, decoder, [partial(decoder.stats, *columns)], len(spans), known.stat_names)
    part.run()
    return _stats([part], known.stat_names)


class _Part:
    """One decoder and the columns that it fills."""

    def __init__(
        self,
        data: Any,
        decoder: xspace.Decoder,
        jobs: Sequence[Callable[[], bool]],
        owners: int,
        stat_names: list[str],
    ) -> None:
        self.data = data
        self.decoder = decoder
        self.jobs = jobs
        self.stat_names = stat_names
        self.columns: dict[str, list[memoryview]] = {}
        for name in decoder.rows():
            self._reserve(name, owners + _LEAST_ROOM)

    def run(self) -> None:
        """Do the jobs, each until there is room for all that it finds, and intern the strings."""
        for job in self.jobs:
            mark = self.decoder.mark()
            while not job():
                self.decoder.undo(mark)
                for name, rows in self.decoder.rows().items():
                    if rows.state()[1]:
                        self._reserve(name, 4 * len(self.columns[name][0]))
        spans = self._view("strings", 2), self._view("strings", 3)
        self.codes, self.strings = strings_of_file.intern(self.data, *spans, secrets.randbits(64))

    def frame(self, name: str, dtype: Any = pl.Int64) -> pl.DataFrame:
        """One kind of rows: owner, key, value."""
        kinds = (("owner", pl.UInt32), ("key", pl.UInt32), ("value", dtype))
        return pl.DataFrame(
            [series(column, self._view(name, i), kind) for i, (column, kind) in enumerate(kinds)]
        )

    def text_frame(self) -> pl.DataFrame:
        """Strings, and references to the names of stats."""
        refs, own = self.frame("refs"), self.frame("strings").select("owner", "key")
        by_key = pl.Series(self.stat_names, dtype=Text)
        by_code = pl.Series([_text(self.data, first, last) for first, last in self.strings], dtype=Text)
        found = [refs.with_columns(value=by_key.gather(refs["value"].cast(pl.UInt32)))]
        found.append(own.with_columns(value=by_code.gather(series("codes", self.codes, pl.UInt32))))
        return pl.concat(found)

    def blob_frame(self) -> pl.DataFrame:
        """Byte strings."""
        spans = zip(self._view("blobs", 2), self._view("blobs", 3), strict=True)
        blobs = [bytes(self.data[first:last]) for first, last in spans]
        own = self.frame("blobs").select("owner", "key")
        return own.with_columns(value=pl.Series(blobs, dtype=pl.Binary))

    def _view(self, name: str, column: int) -> memoryview:
        return self.columns[name][column][: self.decoder.rows()[name].state()[0]]

    def _reserve(self, name: str, count: int) -> None:
        """Columns with more room, that begin with what there is."""
        rows = self.decoder.rows()[name]
        fresh = [
            room("I", count),
            room("I", count),
            room("q", count),
            room("q", count if name in _SPANS else 0),
        ]
        if name in self.columns:
            for old, new in zip(self.columns[name], fresh, strict=True):
                new[: len(old)] = old
        self.columns[name] = fresh
        rows.reserve(*fresh)


def _shares(chunks: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The chunks in as many runs of similar size as there are threads to use."""
    sizes = (chunks["last"] - chunks["first"]).cum_sum()
    total = int(sizes[-1]) if len(sizes) else 0
    threads = max(1, min(_processors(), _MOST_THREADS, total // _PART_BYTES)) if xspace.COMPILED else 1
    cuts = [int(sizes.search_sorted(total * i // threads)) for i in range(1, threads)]
    for begin, stop in zip([0, *cuts], [*cuts, len(chunks)], strict=True):
        yield chunks[begin:stop]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _text(data: Any, first: int, last: int) -> str:
    return bytes(data[first:last]).decode("utf-8", "replace")


def _joined(columns: list[memoryview], parts: list[_Part], stat_names: list[str]) -> Decoded:
    kinds = (
        ("track", pl.UInt32),
        ("name", pl.UInt32),
        ("start_ns", pl.Int64),
        ("dur_ns", pl.Int64),
        ("kind", pl.UInt8),
    )
    troubles = [part.decoder.trouble() for part in parts]
    return Decoded(
        events=pl.DataFrame(
            [series(name, column, kind) for (name, kind), column in zip(kinds, columns, strict=True)]
        ),
        stats=_stats(parts, stat_names),
        producers=_concat(part.frame("producers") for part in parts),
        consumers=_concat(part.frame("consumers") for part in parts),
        broken=sum(trouble[0] for trouble in troubles),
        unknown_fields=sum(trouble[1] for trouble in troubles),
        clamped=sum(trouble[2] for trouble in troubles),
    )


def _stats(parts: list[_Part], stat_names: list[str]) -> Stats:
    keys = list(stat_names)
    return Stats(
        keys,
        ints=_named((part.frame("ints") for part in parts), keys),
        words=_named((part.frame("words", pl.UInt64) for part in parts), keys),
        reals=_named((part.frame("reals", pl.Float64) for part in parts), keys),
        texts=_named((part.text_frame() for part in parts), keys),
        blobs=_named((part.blob_frame() for part in parts), keys),
    )


def _named(frames: Iterator[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """The frames as one, where stats without a name are called by their number."""
    frame = _concat(frames)
    if not _has_unnamed(frame["key"]):
        return frame
    return frame.with_columns(key=name_unnamed(frame["key"], keys, "stat"))


def _has_unnamed(rows: pl.Series) -> bool:
    return bool(len(rows)) and take_largest(rows) >= xspace.UNNAMED


def name_unnamed(rows: pl.Series, known: list[str], what: str) -> pl.Series:
    """The rows of names, where ids without a name get rows of their own at the end of the known names."""
    if not _has_unnamed(rows):
        return rows
    unknown = rows.filter(rows >= xspace.UNNAMED).unique().sort()
    row_of = {name: row for row, name in enumerate(known)}
    new = []
    for mark in unknown:
        name = f"{what} #{mark - xspace.UNNAMED}"
        if name not in row_of:
            row_of[name] = len(known)
            known.append(name)
        new.append(row_of[name])
    renamed: pl.Series = rows.replace(unknown, pl.Series(new, dtype=pl.UInt32))
    return renamed


def _concat(frames: Iterator[pl.DataFrame]) -> pl.DataFrame:
    found = list(frames)
    return found[0] if len(found) == 1 else pl.concat(found, rechunk=False)


@dataclass
class Events:
    """`name_rows` has the row of each event's name in `names` (row, name, raw); the class of each line is by track."""

    names: pl.DataFrame
    name_rows: pl.Series
    tracks: pl.DataFrame
    line_classes: list[int]
    stats: Stats
    name_stats: Stats

    def texts(self, *keys: str) -> pl.DataFrame:
        """Event and value of a stat, be it the event's own or one of its name."""
        return self._both(self.stats.texts_of(*keys), self.name_stats.texts_of(*keys))

    def numbers(self, *keys: str) -> pl.DataFrame:
        """The same for whole numbers."""
        return self._both(self.stats.numbers(*keys), self.name_stats.numbers(*keys))

    def inherited_json(self) -> pl.DataFrame | None:
        """For the events whose names have stats, those stats: event and json."""
        texts: list[str | None] = [None] * len(self.names)
        for row, stats in self.name_stats.by_owner().items():
            plain = {name: value for name, value in stats.items() if not isinstance(value, bytes)}
            texts[row] = msgspec.json.encode(plain).decode() if plain else None
        if not any(texts):
            return None
        found = pl.DataFrame({"json": pl.Series(texts, dtype=Text).gather(self.name_rows)}).with_row_index(
            "event"
        )
        found = found.drop_nulls()
        return found if len(found) else None

    def _both(self, own: pl.DataFrame, of_names: pl.DataFrame) -> pl.DataFrame:
        own = own.rename({"owner": "event"})
        if of_names.is_empty():
            return own
        by_name = pl.Series([None], dtype=of_names["value"].dtype).extend_constant(None, len(self.names) - 1)
        by_name = by_name.scatter(of_names["owner"], of_names["value"])
        inherited = pl.DataFrame({"value": by_name.gather(self.name_rows)}).with_row_index("event")
        inherited = inherited.filter(
            pl.col("value").is_not_null() & ~pl.col("event").is_in(own["event"].implode())
        )
        return pl.concat([own, inherited.select(own.columns)])
