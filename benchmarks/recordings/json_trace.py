"""A JSON trace as columns: events with the same fields form a group, and each field of a group is a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks.recordings.columns import (
    Numbers,
    Texts,
    pack_numbers,
    pack_texts,
    unpack_numbers,
    unpack_texts,
)

_EVENTS = "traceEvents"
_THOUSANDTHS = 1000  # of µs: as exactly as profilers write times
_LARGEST_DECIMAL = 2.0**52

Path = tuple[str, ...]  # of a field: its name, or "args" and a name
Event = dict[str, Any]


class Column(msgspec.Struct, array_like=True):
    """One field: whole numbers, decimals (as thousandths), or anything else as JSON."""

    path: Path
    numbers: Numbers | None
    decimals: bool
    texts: Texts | None


class JsonTrace(msgspec.Struct, array_like=True):
    """The document without its events, which group each event belongs to, and the groups."""

    head: bytes
    order: Numbers
    groups: list[list[Column]]


def pack_json(data: bytes) -> JsonTrace:
    """The columns of a document."""
    document = msgspec.json.decode(data)
    kinds: dict[tuple[Any, ...], list[Event]] = {}
    events, order = document[_EVENTS], []
    document[_EVENTS] = []
    places: dict[tuple[Any, ...], int] = {}
    for event in events:
        kind = (*_paths(event), *(msgspec.json.encode(event.get(name)) for name in ("cat", "ph")))
        kinds.setdefault(kind, []).append(event)
        order.append(places.setdefault(kind, len(places)))
    groups = [[_pack_column(path, rows) for path in _paths(rows[0])] for rows in kinds.values()]
    return JsonTrace(msgspec.json.encode(document), pack_numbers(order), groups)


def unpack_json(packed: JsonTrace) -> bytes:
    """A document with the same values in the same order."""
    groups = [_rows(columns) for columns in packed.groups]
    document = msgspec.json.decode(packed.head)
    document[_EVENTS] = [next(groups[place]) for place in unpack_numbers(packed.order)]
    return msgspec.json.encode(document)


def _paths(event: Event) -> Iterator[Path]:
    for name, value in event.items():
        if name == "args" and isinstance(value, dict) and value:
            yield from (("args", inner) for inner in value)
        else:
            yield (name,)


def _value(event: Event, path: Path) -> Any:
    return event[path[0]][path[1]] if len(path) == 2 else event[path[0]]


def _pack_column(path: Path, rows: list[Event]) -> Column:
    values = [_value(row, path) for row in rows]
    if all(type(value) is int and abs(value) < 2**62 for value in values):
        return Column(path, pack_numbers(values), False, None)
    if all(type(value) is float and abs(value) < _LARGEST_DECIMAL for value in values):
        rounded = [round(value * _THOUSANDTHS) for value in values]
        # As text: -0.0 equals 0.0.
        if all(str(a / _THOUSANDTHS) == str(b) for a, b in zip(rounded, values, strict=True)):
            return Column(path, pack_numbers(rounded), True, None)
    return Column(path, None, False, pack_texts([msgspec.json.encode(value) for value in values]))


def _values(column: Column) -> list[Any]:
    if column.numbers is None:
        assert column.texts is not None
        return [msgspec.json.decode(text) for text in unpack_texts(column.texts)]
    found = unpack_numbers(column.numbers)
    return [value / _THOUSANDTHS for value in found] if column.decimals else found


def _rows(columns: list[Column]) -> Iterator[Event]:
    paths = [column.path for column in columns]
    while not paths:
        yield {}
    for values in zip(*map(_values, columns), strict=True):
        event: Event = {}
        for path, value in zip(paths, values, strict=True):
            if len(path) == 2:
                event.setdefault(path[0], {})[path[1]] = value
            else:
                event[path[0]] = value
        yield event
