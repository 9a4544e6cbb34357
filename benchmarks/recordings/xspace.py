"""An XSpace as columns: all offsets of events side by side, all durations, all values of stats. Not a byte is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from benchmarks.recordings.columns import (
    Numbers,
    Texts,
    pack_numbers,
    pack_texts,
    unpack_numbers,
    unpack_texts,
)

# The messages that there are many of, by the field of the message around them: space, planes, lines, events, stats.
_INSIDE: dict[str, dict[int, str]] = {
    "space": {1: "plane"},
    "plane": {3: "line", 6: "stat"},
    "line": {4: "event"},
    "event": {4: "stat"},
    "stat": {},
}
_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}

Runs = tuple[tuple[int, int], ...]  # the tags of a message's fields, and how often each is repeated


class XSpace(msgspec.Struct, array_like=True):
    """For each kind of message the shapes met and which message has which; then the fields by kind and tag."""

    shapes: dict[str, list[Runs]]
    order: dict[str, Numbers]
    numbers: dict[str, Numbers]
    texts: dict[str, Texts]


class _Split:
    """The columns while they are collected, or while they are read again."""

    def __init__(self) -> None:
        self.shapes: dict[str, dict[Runs, int]] = {}
        self.order: dict[str, list[int]] = {}
        self.numbers: dict[str, list[int]] = {}
        self.texts: dict[str, list[bytes]] = {}

    def add(self, kind: str, data: bytes) -> None:
        """Take a message apart."""
        fields = list(_fields(data))
        runs = tuple((tag, len(list(same))) for tag, same in groupby(tag for tag, _ in fields))
        known = self.shapes.setdefault(kind, {})
        self.order.setdefault(kind, []).append(known.setdefault(runs, len(known)))
        for tag, value in fields:
            name = f"{kind}.{tag}"
            if isinstance(value, int):
                self.numbers.setdefault(name, []).append(value)
            elif (inner := _inner(kind, tag)) is not None:
                self.add(inner, value)
            else:
                self.texts.setdefault(name, []).append(value)


def pack_xspace(data: bytes) -> XSpace:
    """The columns of a message."""
    split = _Split()
    split.add("space", data)
    return XSpace(
        {kind: list(shapes) for kind, shapes in split.shapes.items()},
        {kind: pack_numbers(places) for kind, places in split.order.items()},
        {name: pack_numbers([_signed(value) for value in values]) for name, values in split.numbers.items()},
        {name: pack_texts(values) for name, values in split.texts.items()},
    )


def unpack_xspace(packed: XSpace) -> bytes:
    """The same bytes."""
    order = {kind: iter(unpack_numbers(places)) for kind, places in packed.order.items()}
    numbers = {name: iter(unpack_numbers(values)) for name, values in packed.numbers.items()}
    texts = {name: iter(unpack_texts(values)) for name, values in packed.texts.items()}

    def join(kind: str) -> bytes:
        out = bytearray()
        for tag, count in packed.shapes[kind][next(order[kind])]:
            head, name, inner = _varint(tag), f"{kind}.{tag}", _inner(kind, tag)
            for _ in range(count):
                out += head
                if tag & 7 == _VARINT:
                    out += _varint(next(numbers[name]))
                    continue
                value = join(inner) if inner is not None else next(texts[name])
                out += _varint(len(value)) + value if tag & 7 == _BYTES else value
        return bytes(out)

    return join("space")


def _inner(kind: str, tag: int) -> str | None:
    return _INSIDE[kind].get(tag >> 3) if tag & 7 == _BYTES else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 == _VARINT:
            value, at = _read_varint(data, at)
            yield tag, value
            continue
        if tag & 7 == _BYTES:
            length, at = _read_varint(data, at)
        else:
            length = _FIXED[tag & 7]
        yield tag, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
