"""Protobuf's wire format, as much of it as recording needs: no package for it is installed in every job."""

from __future__ import annotations

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
