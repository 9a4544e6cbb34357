"""Writes what the tests of event files read: protocol-buffer messages, records, and sources in memory."""

from __future__ import annotations

import struct
from typing import Any

from stepscope.formats.source import Source
from stepscope.native.crc32c import crc32c
from tests.builders.protobuf import Field, message

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
T = 1_700_000_000_000_000  # microseconds since 1970


def checksum(data: bytes) -> bytes:
    """The checksum as records store it."""
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """Length, data and their checksums."""
    length = struct.pack("<Q", len(data))
    return length + checksum(length) + data + checksum(data)


def event(*fields: Field) -> bytes:
    """An event as a record; its time comes first."""
    return record(message((1, 1.5e9), *fields))


VERSION = event((3, "brain.Event:2"))


def traced(tag: str, *devices: tuple[str, list[bytes]], step: int | None = None) -> bytes:
    """The event of a traced run: for each device its nodes."""
    stats = message(*((1, message((1, name), *((2, node) for node in nodes))) for name, nodes in devices))
    tagged = message((1, tag), (2, message((1, stats))))
    return event(*([(2, step)] if step is not None else []), (8, tagged))


def node(name: str, start: int, dur: int, label: str = "", *more: tuple[int, Any]) -> bytes:
    """What a node did, in microseconds after T, as TensorFlow 1 wrote it."""
    return message((1, name), (2, T + start), (4, dur), (5, dur), (8, label), *more)


class Held(Source):
    """A source whose content is at hand."""

    def __init__(self, data: bytes, path: str = "logs/events.out.tfevents.1700000000.host7") -> None:
        super().__init__(path)
        self.data = data

    def size(self) -> int:
        """Bytes held."""
        return len(self.data)

    def content(self) -> bytes:
        """The bytes held."""
        return self.data
