"""What the worker and its clients send each other: messages with their length in front, tables as Arrow streams.

An order is answered with the tables that the worker lacks, or with the outcome. Tables and rows follow their message in pieces,
so that neither side ever holds a second copy of a large table.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    import polars as pl

ROWS_PER_PIECE = 1 << 18
GRACE_S = 3.0  # for an interrupted query to end by itself
TOO_LONG = 75  # how the process ends when it did not
FAILED = 76  # how it ends where something went wrong that should not
_LENGTH = struct.Struct("<Q")


class Order(msgspec.Struct, tag="order"):
    """A query. Without seconds or bytes there is no such limit; bytes and threads are those of the first order."""

    sql: str
    seconds: float | None = None
    memory_bytes: int | None = None
    threads: int | None = None
    most_rows: int | None = None


class Table(msgspec.Struct, tag="table"):
    """A table on its way to the worker. Columns of names come as numbers, and `names` has what these stand for."""

    name: str
    names: dict[str, list[str]]
    pieces: int


class Ready(msgspec.Struct, tag="ready"):
    """The worker can be asked, and this is what it gave up before."""

    protections: list[str]


class Wants(msgspec.Struct, tag="wants"):
    """The tables that the query needs and the worker lacks."""

    tables: list[str]


Kind = Literal["rows", "refused", "failed", "too-long", "too-large"]


class Outcome(msgspec.Struct, tag="outcome"):
    """Rows, in `pieces` pieces, or why there are none."""

    kind: Kind
    what: str = ""
    fix: str | None = None
    rows: int = 0
    pieces: int = 0


ToWorker = Order | Table
FromWorker = Ready | Wants | Outcome


def send(stream: IO[bytes], message: ToWorker | FromWorker) -> None:
    """One message."""
    send_bytes(stream, msgspec.msgpack.encode(message))


def send_bytes(stream: IO[bytes], data: bytes | memoryview) -> None:
    """A message as it is."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """The next message; EOFError where the other side has ended."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if data is None or len(data) < count:
        raise EOFError("the other side has ended")
    return data


def pieces_of(rows: int) -> int:
    """In how many pieces `rows` rows go; a table without rows still has columns."""
    return max(1, -(-rows // ROWS_PER_PIECE))


def packed(frame: pl.DataFrame) -> Iterator[memoryview]:
    """The frame's pieces."""
    for number in range(pieces_of(len(frame))):
        target = io.BytesIO()
        frame.slice(number * ROWS_PER_PIECE, ROWS_PER_PIECE).write_ipc_stream(target)
        yield target.getbuffer()


def unpacked(data: bytes) -> pl.DataFrame:
    """A piece."""
    import polars as pl

    return pl.read_ipc_stream(io.BytesIO(data))
