"""Reads PyTorch's own profile of the same cases: each kernel with the op that launched it and the op's input types."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Recorded:
    """One kernel as the profiler saw it."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    op: str
    dtypes: tuple[str, ...]


def read(path: Path) -> list[Recorded]:
    """The kernels in the order in which they ran."""
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    ops = {
        e["args"]["External id"]: e
        for e in events
        if e.get("cat") == "cpu_op" and "External id" in e.get("args", {})
    }
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    return [_recorded(kernel, ops) for kernel in kernels]


def _recorded(kernel: dict[str, Any], ops: dict[int, dict[str, Any]]) -> Recorded:
    args = kernel["args"]
    op = ops.get(args.get("External id", -1), {})
    types = op.get("args", {}).get("Input type", [])
    flat = tuple(t if isinstance(t, str) else "list" for t in types)
    return Recorded(kernel["name"], tuple(args["grid"]), tuple(args["block"]), op.get("name", ""), flat)
