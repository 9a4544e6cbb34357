"""What each step of a run cost, as small tables that can be put together over ranks: what a diff is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

CELL = {"rank": pl.Int32, "step": pl.Int32}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "cells": {**CELL, "ns": pl.Int64},
    "parts": {**CELL, "part": pl.String, "ns": pl.Int64},
    "names": {**CELL, "part": pl.String, "name": pl.String, "ns": pl.Int64},
    "ops": {
        **CELL, "name": pl.String, "scope": pl.String, "shapes": pl.String,
        "host_ns": pl.Int64, "device_ns": pl.Int64, "calls": pl.Int64,
    },
    "kernels": {
        **CELL, "name": pl.String, "op": pl.String, "launch": pl.String, "precision": pl.String, "matrix": pl.Boolean,
        "ns": pl.Int64, "calls": pl.Int64,
    },
    "collectives": {**CELL, "name": pl.String, "dtype": pl.String, "bytes": pl.Int64, "ns": pl.Int64, "exposed_ns": pl.Int64, "calls": pl.Int64},
    "memory": {"rank": pl.Int32, "name": pl.String, "peak_bytes": pl.Int64, "reserved_bytes": pl.Int64},
}  # fmt: skip


@dataclass(frozen=True)
class Samples:
    """Tables of one rank, or of all: a row per rank, step and whatever the table is about.

    `cells` are the steps that count. Ops and kernels are by the step that launched them; `launch` is a kernel's grid.
    """

    cells: pl.DataFrame
    parts: pl.DataFrame
    names: pl.DataFrame
    ops: pl.DataFrame
    kernels: pl.DataFrame
    collectives: pl.DataFrame
    memory: pl.DataFrame


@dataclass(frozen=True)
class Side:
    """One run: its samples, and its report in JSON form."""

    samples: Samples
    report: Mapping[str, Any]


def in_form(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The table with exactly its columns and types."""
    schema = _SCHEMAS[name]
    return frame.select(pl.col(column).cast(kind) for column, kind in schema.items())


def together(ranks: Sequence[Samples]) -> Samples:
    """Those of all ranks as one."""
    return Samples(
        **{
            each.name: pl.concat(
                [
                    pl.DataFrame(schema=_SCHEMAS[each.name]),
                    *(in_form(each.name, getattr(rank, each.name)) for rank in ranks),
                ]
            )
            for each in fields(Samples)
        }
    )
