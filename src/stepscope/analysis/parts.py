"""The parts of a step's account: what a moment of it can be given to."""

from __future__ import annotations

import polars as pl

BUSY_PARTS = ("compute", "collective", "copy")
IDLE_PARTS = (
    "input", "compile", "python", "dispatch", "sync", "device_gap", "host_collective", "io", "profiler",
    "unrecorded", "unexplained",
)  # fmt: skip
PARTS = (*BUSY_PARTS, "host_compute", *IDLE_PARTS)
Part = pl.Enum(PARTS)


def part(name: str) -> pl.Expr:
    """One of the parts as a literal."""
    return pl.lit(name, dtype=Part)
