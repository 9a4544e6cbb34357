"""Device memory profiles: a file of a few samples, written field by field."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from stepscope.analysis.snapshot.explain import explain
from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.source import Source

TEXTS = ["", "allocations", "count", "space", "bytes", "train", "/home/me/train.py", "kind", "buffer", "device", "cuda:0", "init"]  # fmt: skip


def varint(number: int) -> bytes:
    """The number as protobuf writes it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    """A field with a number."""
    return varint(field << 3) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    """A field with bytes."""
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def sample(location: int, size: int) -> bytes:
    """A buffer of this size."""
    return message(
        2,
        message(1, varint(location)),
        message(2, varint(1), varint(size)),
        message(3, number(1, 7), number(2, 8)),
        message(3, number(1, 9), number(2, 10)),
    )


def profile(*samples: bytes, unit: int = 4) -> bytes:
    """The file."""
    return b"".join(
        [
            message(1, number(1, 1), number(2, 2)),
            message(1, number(1, 3), number(2, unit)),
            *samples,
            message(4, number(1, 1), message(4, number(1, 1), number(2, 12))),
            message(4, number(1, 2), message(4, number(1, 2), number(2, 5))),
            message(5, number(1, 1), number(2, 5), number(4, 6)),
            message(5, number(1, 2), number(2, 11), number(4, 6)),
            *(message(6, each.encode()) for each in TEXTS),
        ]
    )


def test_buffers_by_line(tmp_path: Path) -> None:
    path = tmp_path / "memory.prof"
    path.write_bytes(gzip.compress(profile(sample(1, 1 << 20), sample(2, 3 << 20), sample(1, 1 << 20))))
    trace = read(Source(str(path)))
    assert (trace.info.format, trace.info.framework) == ("pprof", "jax")
    (found,) = explain(trace)
    lines = found.by_line.select("site_line", "site_function", "bytes").rows()
    assert lines == [(5, "init", 3 << 20), (12, "train", 2 << 20)]
    assert trace.blocks["device"].unique().to_list() == [0]


def test_cut_and_other_profiles(tmp_path: Path) -> None:
    path = tmp_path / "memory.prof"
    path.write_bytes(profile(sample(1, 100), unit=2))
    with pytest.raises(UnreadableFile, match="without bytes of memory"):
        read(Source(str(path)))
    whole = profile(sample(1, 100), sample(2, 200))
    path.write_bytes(whole[:-3])
    trace = read(Source(str(path)))
    assert trace.problems["code"].to_list() == ["damaged-message"]
    assert int(trace.blocks.select(pl.col("bytes").sum()).item()) == 300
