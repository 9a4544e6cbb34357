"""Writes protocol-buffer messages field by field, without any protobuf library."""

from __future__ import annotations

import struct

Value = int | float | str | bytes
Field = tuple[int, Value]


def varint(value: int) -> bytes:
    """A number in protobuf's variable-length form; negative ones take ten bytes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field_number: int, value: int) -> bytes:
    """A varint field."""
    return varint(field_number << 3) + varint(value)


def packed(field_number: int, data: bytes | str) -> bytes:
    """A field of bytes, text or a message."""
    raw = data.encode() if isinstance(data, str) else data
    return varint(field_number << 3 | 2) + varint(len(raw)) + raw


def double(field_number: int, value: float) -> bytes:
    """A fixed64 field."""
    return varint(field_number << 3 | 1) + struct.pack("<d", value)


def message(*fields: Field) -> bytes:
    """The fields in the given order: whole numbers as varints, others as doubles, text and bytes with a length."""
    return b"".join(field(place, value) for place, value in fields)


def field(field_number: int, value: Value) -> bytes:
    """One field, by the type of its value."""
    if isinstance(value, int):
        return number(field_number, value)
    return double(field_number, value) if isinstance(value, float) else packed(field_number, value)
