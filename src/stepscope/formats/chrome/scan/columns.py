"""Chrome trace JSON of any writer, as tables in the order of the file: the common base of its readers."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Any

import polars as pl

from stepscope.formats.chrome.scan.problems import note_counted
from stepscope.formats.chrome.scan.vocabulary import VOCABULARY
from stepscope.lazy import dataclass
from stepscope.native import order
from stepscope.native.json import events as native
from stepscope.trace.columns import byte_strings, repeated, series
from stepscope.trace.frames import take
from stepscope.trace.json_text import decoded, repaired_json
from stepscope.trace.problems import Problems
from stepscope.trace.schema import Text

MISSING = native.MISSING
Identity = int | str | None  # a pid, tid or id as the file has it


@dataclass
class JsonEvents:
    """What a scan brought back. `event` columns hold row numbers of `events`."""

    events: pl.DataFrame  # ph, name, category, track, start, dur
    tracks: list[tuple[Identity, Identity]]
    layouts: dict[str, pl.DataFrame]  # event and the layout's columns; see kineto_arguments
    flows: pl.DataFrame  # start, track, id, category, name, ph, bind_enclosing
    asyncs: pl.DataFrame  # event, id
    metadata: list[tuple[str, Identity, Identity, dict[str, Any]]]
    rest: pl.DataFrame  # event, json: arguments that have no column
    header: dict[str, Any] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)


def layout_types(layout: str) -> dict[str, Any]:
    """The columns of a layout's table."""
    return {"event": pl.UInt32} | {column: _column_type(column) for column in VOCABULARY.columns[layout]}


def _column_type(column: str) -> Any:
    if column in VOCABULARY.texts:
        return Text
    return pl.Float64 if column in VOCABULARY.billionths else pl.Int64


def new_scanner(expected_events: int) -> native.Scanner:
    """A scanner that knows Kineto's arguments; they cost nothing in files of other writers."""
    words = VOCABULARY
    return native.Scanner(
        words.keys,
        words.slot_count,
        words.categories,
        words.layouts,
        words.trigger,
        words.fallback,
        expected_events,
    )


class Gathering:
    """Joins what several scanners read, piece after piece, into one set of tables."""

    def __init__(self) -> None:
        self._events: list[pl.DataFrame] = []
        self._layouts: dict[str, list[pl.DataFrame]] = {name: [] for name in VOCABULARY.columns}
        self._flows: list[pl.DataFrame] = []
        self._asyncs: list[pl.DataFrame] = []
        self._rest: list[pl.DataFrame] = []
        self._metadata: list[tuple[str, Identity, Identity, dict[str, Any]]] = []
        self._tracks: dict[tuple[Identity, Identity], int] = {}
        self._ids: dict[str, int] = {}
        self._rows = 0
        self.problems = Problems()
        self.header: dict[str, Any] = {}
        self.counts: Counter[str] = Counter()
        self.first_bad = -1

    def pass_over(self, place: int, count: int) -> None:
        """Count bytes at this place of the document that no scanner could read."""
        self.counts["bad_bytes"] += count
        self.note_bad(place)

    def note_bad(self, place: int) -> None:
        """Remember the first place of the document that could not be read."""
        self.first_bad = place if self.first_bad < 0 else min(place, self.first_bad)

    def add(self, scanner: native.Scanner) -> None:
        """Take over all that the scanner read."""
        strings, broken = decoded(scanner.texts())
        self.counts.update(scanner.counts())
        self.counts["broken_texts"] += broken
        names = pl.Series("strings", strings, dtype=Text)
        tracks = self._track_numbers(scanner, strings)
        self._events.append(_event_frame(scanner, names, tracks))
        for number, name in enumerate(VOCABULARY.columns):
            self._layouts[name].append(self._layout_frame(name, scanner.layout(number), names))
        self._flows.append(self._flow_frame(scanner, names, strings, tracks))
        self._asyncs.append(self._async_frame(scanner, strings))
        self._take_rest(scanner, strings)
        self._rows += scanner.counts()["events"]

    def result(self) -> JsonEvents:
        """The tables of all pieces together."""
        note_counted(self.problems, self.counts, self.first_bad)
        return JsonEvents(
            events=_joined(self._events),
            tracks=list(self._tracks),
            layouts={name: _joined(frames) for name, frames in self._layouts.items()},
            flows=_joined(self._flows),
            asyncs=_joined(self._asyncs),
            metadata=self._metadata,
            rest=_joined(self._rest),
            header=self.header,
            problems=self.problems,
        )

    def _track_numbers(self, scanner: native.Scanner, strings: list[str]) -> pl.Series:
        numbers = []
        for pid, tid in scanner.tracks():
            key = (_identity(pid, strings), _identity(tid, strings))
            numbers.append(self._tracks.setdefault(key, len(self._tracks)))
        return pl.Series("track", numbers, dtype=pl.UInt32)

    def _layout_frame(self, layout: str, cells: list[memoryview], names: pl.Series) -> pl.DataFrame:
        if not len(cells[0]):
            return pl.DataFrame(schema=layout_types(layout))
        event = (series("event", cells[0], pl.Int64) + self._rows).cast(pl.UInt32)
        columns = zip(VOCABULARY.columns[layout], cells[1:], strict=True)
        return pl.DataFrame([event, *(_argument(name, cell, names) for name, cell in columns)])

    def _flow_frame(
        self, scanner: native.Scanner, names: pl.Series, strings: list[str], tracks: pl.Series
    ) -> pl.DataFrame:
        rows = series("flows", scanner.flow_rows(), pl.Int64)
        names_of = enumerate(native.FLOW_COLUMNS)
        columns = {name: rows.gather_every(7, at) if len(rows) else rows for at, name in names_of}
        return pl.DataFrame(
            {
                "start": columns["start"],
                "track": take(tracks, columns["track"].cast(pl.UInt32)),
                "id": self._id_numbers(columns["id"], strings),
                "category": take(names, _code(columns["category"])),
                "name": take(names, _code(columns["name"])),
                "ph": columns["ph"].cast(pl.UInt8),
                "bind_enclosing": columns["bind_enclosing"].cast(pl.Boolean),
            }
        )

    def _async_frame(self, scanner: native.Scanner, strings: list[str]) -> pl.DataFrame:
        rows = series("asyncs", scanner.async_rows(), pl.Int64)
        return pl.DataFrame(
            {
                "event": (rows.gather_every(2, 0) + self._rows).cast(pl.UInt32),
                "id": self._id_numbers(rows.gather_every(2, 1), strings),
            }
        )

    def _id_numbers(self, ids: pl.Series, strings: list[str]) -> pl.Series:
        """Ids that are strings, numbered alike in all pieces; numbers stay."""
        is_text = (ids >= native.TEXT_ID) & (ids < native.TEXT_ID + len(strings))
        if not is_text.any():
            return _without(ids, MISSING)
        used = ids.filter(is_text).unique().to_list()
        common = [
            native.TEXT_ID + self._ids.setdefault(strings[i - native.TEXT_ID], len(self._ids)) for i in used
        ]
        return _without(ids.replace(used, common), MISSING)

    def _take_rest(self, scanner: native.Scanner, strings: list[str]) -> None:
        events, offsets, texts = scanner.rest_texts()
        rest = pl.DataFrame([series("event", events, pl.Int64), byte_strings("json", offsets, texts)])
        arguments = {
            -1 - event: repaired_json(text) for event, text in rest.filter(pl.col("event") < 0).iter_rows()
        }
        metas = scanner.meta_rows()
        for row in range(len(metas) // 3):
            name, pid, tid = metas[3 * row], metas[3 * row + 1], metas[3 * row + 2]
            args = arguments.get(row)
            label = strings[name] if name < len(strings) else ""
            found = args if isinstance(args, dict) else {}
            self._metadata.append((label, _identity(pid, strings), _identity(tid, strings), found))
        of_events = rest.filter(pl.col("event") >= 0)
        self._rest.append(of_events.with_columns((pl.col("event") + self._rows).cast(pl.UInt32)))


def _identity(value: int, strings: list[str]) -> Identity:
    if value == MISSING:
        return None
    code = value - native.TEXT_ID
    return strings[code] if 0 <= code < len(strings) else value


def _code(codes: pl.Series) -> pl.Series:
    """Codes of strings; the code that stands for none becomes null."""
    found: pl.Series = _without(codes, 0xFFFFFFFF).cast(pl.UInt32)
    return found


def _without(values: pl.Series, missing: int) -> pl.Series:
    """Null where the scanner wrote the number that stands for nothing."""
    is_missing = values == missing
    return values.set(is_missing, None) if is_missing.any() else values


def _argument(name: str, cells: memoryview, names: pl.Series) -> pl.Series:
    """The column of an argument, null where an event did not have it."""
    bits, count = order.presence(cells, MISSING)
    if not count:
        return repeated(None, len(cells), _column_type(name), name)
    found = series(name, cells, pl.Int64, bits if count < len(cells) else None)
    if name in VOCABULARY.billionths:
        return found / 1e9
    return take(names, found.cast(pl.UInt32)).alias(name) if name in VOCABULARY.texts else found


def _event_frame(scanner: native.Scanner, names: pl.Series, tracks: pl.Series) -> pl.DataFrame:
    columns = scanner.events()
    name = series("name", columns["name"], pl.UInt32)
    category = series("category", columns["category"], pl.UInt32)
    return pl.DataFrame(
        {
            "ph": series("ph", columns["ph"], pl.UInt8),
            "name": take(names, _code(name)),
            "category": take(names, _code(category)),
            "track": take(tracks, series("track", columns["track"], pl.UInt32)),
            "start": series("start", columns["start"], pl.Int64),
            "dur": series("dur", columns["dur"], pl.Int64),
        }
    )


def _joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return frames[0] if len(frames) == 1 else pl.concat(frames, rechunk=True)
