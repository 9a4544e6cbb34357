"""Protobuf's wire format, as much of it as recording needs: no package for it is installed in every job."""

from __future__ import annotations

from collections.abc import Iterator

_MOST_SHIFT = 63


def varint(value: int) -> bytes:
    """A whole number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def head(field: int, length: int) -> bytes:
    """The prefix of a content of this length."""
    return varint(field << 3 | 2) + varint(length)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends. ValueError where it is cut, or longer than any number."""
    value = shift = 0
    try:
        while shift <= _MOST_SHIFT:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
    except IndexError:
        raise ValueError("a number is cut") from None
    raise ValueError("a number has too many bytes")


def number_of(data: bytes, at: int, end: int, wanted: int) -> int:
    """The number in this field of a message, 0 without one."""
    return next(
        (read_varint(data, body)[0] for number, _, body, _ in fields(data, at, end) if number == wanted), 0
    )


def text_of(data: bytes, at: int, end: int, wanted: int) -> bytes:
    """The text in this field of a message, empty without one."""
    return next((data[body:stop] for number, _, body, stop in fields(data, at, end) if number == wanted), b"")


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Field number, where the field begins, where its content begins, where it ends."""
    while at < end:
        begin = at
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 2:
            length, at = read_varint(data, at)
            stop = at + length
        elif kind == 0:
            stop = read_varint(data, at)[1]
        elif kind in (1, 5):
            stop = at + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"no such kind of field: {kind}")
        if stop > end:
            raise ValueError("a field runs out of its message")
        yield tag >> 3, begin, at, stop
        at = stop
