"""Tiny Kineto files in folders, for tests of what finds and loads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

MS = 1_000_000


def kineto(events: int = 3, rank: int | None = None, world_size: int | None = None) -> bytes:
    """A Kineto trace of so many ops, one step around them."""
    ops = [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op{i}", "pid": 7, "tid": 7, "ts": 10 * i + 1, "dur": 5,
         "args": {"External id": i, "Ev Idx": i}}
        for i in range(events)
    ]  # fmt: skip
    step = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "ProfilerStep#1",
        "pid": 7,
        "tid": 7,
        "ts": 0,
        "dur": 10 * events + 10,
    }
    document: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Fast <GPU>"}]}
    if rank is not None:
        document["distributedInfo"] = {"rank": rank, "world_size": world_size or rank + 1}
    document |= {"baseTimeNanoseconds": 0, "traceEvents": [step, *ops], "traceName": "x"}
    return json.dumps(document).encode()


def put(folder: Path, *paths: str, content: bytes | None = None) -> None:
    """Files with a small profile in each, or with this content."""
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = kineto() if content is None else content
        file.write_bytes(gzip.compress(data) if path.endswith(".gz") and content is None else data)
