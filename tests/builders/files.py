"""Tiny Kineto files in folders, for tests of what finds and loads them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.builders import documents
from tests.builders.documents import Event, event

MS = 1_000_000


def kineto(events: int = 3, rank: int | None = None, world_size: int | None = None) -> bytes:
    """A Kineto trace of ops, with one step around them."""
    place = {"pid": 7, "tid": 7}
    ops = [
        event("cpu_op", f"aten::op{i}", 10 * i + 1, 5, **place, args={"External id": i, "Ev Idx": i})
        for i in range(events)
    ]
    step = event("user_annotation", "ProfilerStep#1", 0, 10 * events + 10, **place)
    header: dict[str, Any] = {"deviceProperties": [{"id": 0, "name": "Fast <GPU>"}], "baseTimeNanoseconds": 0}
    if rank is not None:
        header["distributedInfo"] = {"rank": rank, "world_size": world_size or rank + 1}
    return documents.kineto(step, *ops, **header)


def write(path: Path, data: bytes) -> Path:
    """A file with this content, packed where its name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def write_kineto(path: Path, *events: Event, **header: Any) -> Path:
    """A Kineto file of these events."""
    return write(path, documents.kineto(*events, **header))


def write_ops(path: Path, *names: str) -> Path:
    """A Kineto file of these ops, without steps and each of another length, so that none can be inferred."""
    return write_kineto(path, *(event("cpu_op", name, 10 * at, 5 + at) for at, name in enumerate(names)))


def load(data: bytes, folder: Path, name: str = "host.xplane.pb") -> Trace:
    """The trace in these bytes, read from a file of this name that has them as they are."""
    path = folder / name
    path.write_bytes(data)
    return read(Source(str(path)))


def put(folder: Path, *paths: str, content: bytes | None = None) -> None:
    """Files with a small profile in each, or with this content."""
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = kineto() if content is None else content
        file.write_bytes(gzip.compress(data) if path.endswith(".gz") and content is None else data)
