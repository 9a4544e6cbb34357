"""What an XSpace holds, without its events: planes, lines, names, and where the events are."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import field
from typing import Any

import polars as pl

from stepscope.lazy import dataclass
from stepscope.native.protobuf import wire
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import kept

CHUNK_BYTES = 1 << 20
_BYTES = wire.BYTES
_CUT_BYTES = wire.BYTES + wire.CUT
_LONGEST_HEADER = 11
_FIELD_COLUMNS = (
    ("message", "I", pl.UInt32),
    ("field", "I", pl.UInt32),
    ("form", "B", pl.UInt8),
    ("first", "q", pl.Int64),
    ("last", "q", pl.Int64),
)
_CHUNK_COLUMNS = (
    ("line", "I", pl.UInt32),
    ("first", "q", pl.Int64),
    ("last", "q", pl.Int64),
    ("count", "q", pl.Int64),
)


@dataclass(frozen=True)
class _Message:
    """The fields of a message with their forms, and those that no writer puts there twice."""

    forms: dict[int, int]
    once: tuple[int, ...] = ()


_SPACE = _Message(dict.fromkeys(range(1, 5), _BYTES))
_PLANE = _Message({1: wire.VARINT} | dict.fromkeys(range(2, 7), _BYTES), once=(1, 2))
_LINE = _Message(
    dict.fromkeys((1, 3, 9, 10), wire.VARINT) | dict.fromkeys((2, 4, 11), _BYTES), once=(1, 2, 3, 9, 10, 11)
)


@dataclass
class Damage:
    """What could not be read while the file was split."""

    cut_fields: int = 0
    lost_messages: int = 0
    lost_bytes: int = 0
    lost_at: int = -1
    unknown_fields: int = 0


@dataclass
class Plane:
    """One plane: a host, a device, or a place for facts."""

    name: str
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass
class Index:
    """An XSpace: its planes; its lines, chunks of events and names as tables; stats of names and planes by place."""

    data: Any
    planes: list[Plane]
    lines: pl.DataFrame
    chunks: pl.DataFrame
    event_names: pl.DataFrame
    stat_names: pl.DataFrame
    name_stats: pl.DataFrame
    plane_stats: pl.DataFrame
    errors: list[str]
    warnings: list[str]
    hostnames: list[str]
    damage: Damage
    truncated: bool

    @property
    def events(self) -> int:
        """How many complete events the lines hold."""
        return int(self.chunks["count"].sum())


def index(data: Any) -> Index:
    """Walk the file down to its lines and names. Cut planes and lines are walked into as far as they go."""
    splitter = _Splitter(data)
    space = splitter.split(pl.DataFrame({"first": [0], "last": [len(data)]}), _SPACE)
    cut = bool((space["form"] == _CUT_BYTES).any()) or _ends_in_a_header(data, splitter.damage)
    plane_spans = _messages(space, 1)
    parts = splitter.split(plane_spans, _PLANE)
    name_of = _texts(data, _complete(parts, 2), len(plane_spans))
    event_names, name_stats = _event_names(splitter, parts)
    lines, chunks = _lines(splitter, _messages(parts, 3))
    return Index(
        data=data,
        planes=[Plane(name or "") for name in name_of],
        lines=lines,
        chunks=chunks,
        event_names=event_names,
        stat_names=_stat_names(splitter, parts),
        name_stats=name_stats,
        plane_stats=_complete(parts, 6).rename({"message": "owner"}).with_columns(plane=pl.col("owner")),
        errors=_all_texts(data, space, 2),
        warnings=_all_texts(data, space, 3),
        hostnames=_all_texts(data, space, 4),
        damage=splitter.damage,
        truncated=cut,
    )


def _ends_in_a_header(data: Any, damage: Damage) -> bool:
    """Whether what is lost at the end of the file is the beginning of a plane: its tag, and its length in part."""
    is_last = damage.lost_messages == 1 and damage.lost_at + damage.lost_bytes == len(data)
    if not is_last or damage.lost_bytes > _LONGEST_HEADER:
        return False
    tag, *length = bytes(data[damage.lost_at :])
    return tag >> 3 in _SPACE.forms and tag & 7 == wire.BYTES and all(byte & 0x80 for byte in length)


class _Splitter:
    """Splits messages into fields, and adds up what cannot be read."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.damage = Damage()

    def split(self, spans: pl.DataFrame, known: _Message | None = None) -> pl.DataFrame:
        """All fields of the messages: message, field, form, and the value or the span of the payload."""
        return self.split_bulk(spans, 0, known)[0]

    def split_bulk(
        self, spans: pl.DataFrame, bulk: int, known: _Message | None = None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The fields but for the one that repeats by the million, and the chunks of that one."""
        total = int((spans["last"] - spans["first"]).sum())
        splitter = wire.Splitter(self.data, bulk, CHUNK_BYTES)
        begins, stops = buffer(spans["first"]), buffer(spans["last"])
        room, chunk_room = 8 * len(spans) + 64, total // CHUNK_BYTES + len(spans) + 1
        while True:
            fields, chunks = _columns(_FIELD_COLUMNS, room), _columns(_CHUNK_COLUMNS, chunk_room)
            splitter.reserve(fields, chunks)
            count, chunk_count, cut, lost, lost_bytes, lost_at = splitter.run(begins, stops)
            if count <= room and chunk_count <= chunk_room:
                break
            room, chunk_room = max(room, count), max(chunk_room, chunk_count)
        self._note(cut, lost, lost_bytes, lost_at)
        found = _frame(_FIELD_COLUMNS, fields, count)
        if known is not None:
            self._note_unknown(found, known)
        return found, _frame(_CHUNK_COLUMNS, chunks, chunk_count)

    def _note_unknown(self, fields: pl.DataFrame, known: _Message) -> None:
        """Count the fields that are not of the message, not in their form, or there once more."""
        numbers = fields["field"].unique(maintain_order=True)
        forms = [known.forms.get(number, -1) for number in numbers]
        form = fields["field"].replace_strict(numbers, forms, return_dtype=pl.Int16)
        plain = fields["form"].cast(pl.Int16)
        fits = (plain == form) | (plain == form + wire.CUT)
        self.damage.unknown_fields += len(fields) - int(fits.sum())
        for number in known.once:
            messages = fields["message"].filter(fits & (fields["field"] == number))
            self.damage.unknown_fields += len(messages) - messages.n_unique()

    def _note(self, cut: int, lost: int, lost_bytes: int, lost_at: int) -> None:
        damage = self.damage
        damage.cut_fields += cut
        damage.lost_messages += lost
        damage.lost_bytes += lost_bytes
        if lost and (damage.lost_at < 0 or lost_at < damage.lost_at):
            damage.lost_at = lost_at


def _columns(kinds: Iterable[tuple[str, str, Any]], room: int) -> list[array[int]]:
    return [array(code, bytes(array(code).itemsize * room)) for _, code, _ in kinds]


def _frame(kinds: Iterable[tuple[str, str, Any]], columns: list[array[int]], count: int) -> pl.DataFrame:
    return pl.DataFrame(
        [
            series(name, memoryview(column)[:count], dtype)
            for (name, _, dtype), column in zip(kinds, columns, strict=True)
        ]
    )


def _messages(fields: pl.DataFrame, number: int) -> pl.DataFrame:
    """The spans of this field's messages, those included that are cut."""
    forms = fields["form"]
    return _spans(fields, (fields["field"] == number) & ((forms == _BYTES) | (forms == _CUT_BYTES)))


def _complete(fields: pl.DataFrame, number: int) -> pl.DataFrame:
    return _spans(fields, (fields["field"] == number) & (fields["form"] == _BYTES))


def _spans(fields: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
    return kept(fields[["message", "first", "last"]], wanted)


def _texts(data: Any, spans: pl.DataFrame, count: int) -> list[str | None]:
    """The text of each message's span, None where it has none; where there are several, the last one counts."""
    found: list[str | None] = [None] * count
    for message, first, last in spans.iter_rows():
        found[message] = bytes(data[first:last]).decode("utf-8", "replace")
    return found


def _numbers(fields: pl.DataFrame, number: int, count: int) -> pl.Series:
    """The value of this field of each message, 0 where it is missing; where it repeats, the last one counts."""
    wanted = (fields["field"] == number) & (fields["form"] == wire.VARINT)
    return _spread(fields["message"].filter(wanted), fields["first"].filter(wanted), count, 0)


def _spread(messages: pl.Series, values: pl.Series, count: int, missing: int) -> pl.Series:
    return pl.repeat(missing, count, dtype=pl.Int64, eager=True).scatter(messages, values)


def _all_texts(data: Any, fields: pl.DataFrame, number: int) -> list[str]:
    spans = _complete(fields, number)
    return [bytes(data[first:last]).decode("utf-8", "replace") for _, first, last in spans.iter_rows()]


def _lines(splitter: _Splitter, spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    fields, chunks = splitter.split_bulk(spans, 4, _LINE)
    count = len(spans)
    lines = pl.DataFrame(
        {
            "plane": spans["message"],
            "id": _numbers(fields, 1, count),
            "name": pl.Series(_texts(splitter.data, _complete(fields, 2), count), dtype=pl.String),
            "time": _numbers(fields, 3, count),
            "display_id": _numbers(fields, 10, count),
            "display_name": pl.Series(_texts(splitter.data, _complete(fields, 11), count), dtype=pl.String),
        }
    )
    return lines.with_columns(pl.col("name", "display_name").fill_null("")), chunks


def _entries(splitter: _Splitter, parts: pl.DataFrame, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A map of a plane: plane and key of each entry that has a value, and the fields of those values."""
    spans = _complete(parts, number)
    fields = splitter.split(spans)
    values = _complete(fields, 2)
    entries = pl.DataFrame(
        {
            "plane": spans["message"],
            "id": _numbers(fields, 1, len(spans)),
            "first": _spread(values["message"], values["first"], len(spans), -1),
            "last": _spread(values["message"], values["last"], len(spans), -1),
        }
    ).filter(pl.col("first") >= 0)
    return entries.select("plane", "id"), splitter.split(entries.select("first", "last"))


def _event_names(splitter: _Splitter, parts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Names of events with the text that is shown and the one underneath, and the places of the stats they carry."""
    entries, fields = _entries(splitter, parts, 4)
    shown = _texts(splitter.data, _complete(fields, 4), len(entries))
    raw = _texts(splitter.data, _complete(fields, 2), len(entries))
    names = entries.with_columns(
        name=pl.Series([a or b or "" for a, b in zip(shown, raw, strict=True)], dtype=pl.String),
        raw=pl.Series([text or "" for text in raw], dtype=pl.String),
    )
    stats = _complete(fields, 5).rename({"message": "owner"})
    return names, stats.with_columns(plane=entries["plane"].gather(stats["owner"]))


def _stat_names(splitter: _Splitter, parts: pl.DataFrame) -> pl.DataFrame:
    entries, fields = _entries(splitter, parts, 5)
    names = _texts(splitter.data, _complete(fields, 2), len(entries))
    return entries.with_columns(name=pl.Series([text or "" for text in names], dtype=pl.String))
