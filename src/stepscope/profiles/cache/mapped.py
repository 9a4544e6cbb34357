"""Columns of an Arrow IPC file, used in place: the file is mapped and its buffers are lent to Polars.

Polars' own readers copy every column, which costs as much memory and time as the trace has bytes. Only what the
cache writes is understood here: plain numbers, one type a column, not compressed, with or without nulls.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.trace.columns import series

MAGIC = b"ARROW1"
_ITEM_BYTES: dict[Any, int] = {
    pl.UInt8: 1,
    pl.UInt16: 2,
    pl.Int32: 4,
    pl.UInt32: 4,
    pl.Int64: 8,
    pl.UInt64: 8,
    pl.Float32: 4,
    pl.Float64: 8,
}


class Damaged(Exception):
    """A stored file that is not what was written."""


class _Record:
    """A FlatBuffers table inside the map: its fields by their number in the Arrow specification."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self.data = data
        self.at = at

    def place(self, field: int) -> int:
        """Where the field is; 0 when the writer left it out."""
        fields = self.at - _number(self.data, "<i", self.at)
        if 4 + 2 * field >= _number(self.data, "<H", fields):
            return 0
        offset = _number(self.data, "<H", fields + 4 + 2 * field)
        return self.at + offset if offset else 0

    def integer(self, field: int) -> int:
        """A 64-bit field."""
        at = self.place(field)
        return _number(self.data, "<q", at) if at else 0

    def record(self, field: int) -> _Record:
        """A table that this one refers to."""
        at = self._followed(field)
        return _Record(self.data, at)

    def structs(self, field: int, layout: str) -> Iterator[tuple[int, ...]]:
        """A vector of fixed structures."""
        at = self._followed(field)
        count = _number(self.data, "<I", at)
        size = struct.calcsize(layout)
        if at + 4 + count * size > len(self.data):
            raise Damaged("a vector is longer than its file")
        return struct.iter_unpack(layout, self.data[at + 4 : at + 4 + count * size])

    def _followed(self, field: int) -> int:
        at = self.place(field)
        if not at:
            raise Damaged(f"field {field} is missing")
        return at + _number(self.data, "<I", at)


def _number(data: mmap.mmap, layout: str, at: int) -> int:
    if at < 0 or at + struct.calcsize(layout) > len(data):
        raise Damaged("an offset points outside the file")
    return int(struct.unpack_from(layout, data, at)[0])


def mapped(data: mmap.mmap, columns: Mapping[str, Any]) -> pl.DataFrame:
    """The table in the mapped file, which must have exactly these columns of plain numbers."""
    parts = [_batch(data, columns, *block) for block in _footer(data).structs(3, "<qi4xq")]
    if not parts:
        return pl.DataFrame(schema=dict(columns))
    return pl.concat(parts, rechunk=False)


def _footer(data: mmap.mmap) -> _Record:
    if data[:6] != MAGIC or data[-6:] != MAGIC:
        raise Damaged("it is not an Arrow file")
    start = len(data) - 10 - _number(data, "<i", len(data) - 10)
    return _Record(data, start + _number(data, "<I", start))


def _batch(
    data: mmap.mmap, columns: Mapping[str, Any], start: int, head_bytes: int, body_bytes: int
) -> pl.DataFrame:
    # A message begins with a marker and the length of its head.
    message = _Record(data, start + 8 + _number(data, "<I", start + 8))
    batch = message.record(2)
    body = memoryview(data)[start + head_bytes : start + head_bytes + body_bytes]
    rows = batch.integer(0)
    nodes = list(batch.structs(1, "<qq"))
    buffers = list(batch.structs(2, "<qq"))
    if batch.place(3) or len(nodes) != len(columns) or len(buffers) != 2 * len(columns):
        raise Damaged("its columns are not those that were written")
    return pl.DataFrame(
        [
            _column(name, dtype, rows, nulls, body, buffers[2 * i : 2 * i + 2])
            for i, ((name, dtype), (_, nulls)) in enumerate(zip(columns.items(), nodes, strict=True))
        ]
    )


def _column(
    name: str, dtype: Any, rows: int, nulls: int, body: memoryview, buffers: list[tuple[int, ...]]
) -> pl.Series:
    (bits_at, bits_bytes), (at, held) = buffers
    size = rows * _ITEM_BYTES[dtype]
    if min(at, bits_at, size) < 0 or size > held or at + size > len(body) or bits_at + bits_bytes > len(body):
        raise Damaged(f"column {name} reaches outside its file")
    if nulls and bits_bytes * 8 < rows:
        raise Damaged(f"column {name} has too few validity bits")
    validity = body[bits_at : bits_at + bits_bytes] if nulls else None
    return series(name, body[at : at + size], dtype, validity)
