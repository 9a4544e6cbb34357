"""What each step of a run cost, as small tables that can be put together over ranks: what a diff is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import polars as pl

# `recording` tells recordings of one side apart, where it has several.
CELL = {"recording": pl.Int32, "rank": pl.Int32, "step": pl.Int32}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "cells": {**CELL, "ns": pl.Int64},
    "parts": {**CELL, "part": pl.String, "ns": pl.Int64},
    "names": {**CELL, "part": pl.String, "name": pl.String, "ns": pl.Int64},
    "ops": {
        **CELL, "name": pl.String, "scope": pl.String, "shapes": pl.String,
        "host_ns": pl.Int64, "device_ns": pl.Int64, "calls": pl.Int64, "link_ns": pl.Int64, "link_bytes": pl.Int64,
    },
    "kernels": {
        **CELL, "name": pl.String, "op": pl.String, "launch": pl.String, "precision": pl.String,
        "ns": pl.Int64, "calls": pl.Int64,
    },
    "products": {**CELL, "precision": pl.String, "ns": pl.Int64},
    "waits": {**CELL, "name": pl.String, "ns": pl.Int64, "calls": pl.Int64},
    "functions": {**CELL, "name": pl.String, "inside": pl.String, "ns": pl.Int64, "calls": pl.Int64},
    "collectives": {**CELL, "name": pl.String, "dtype": pl.String, "bytes": pl.Int64, "ns": pl.Int64, "exposed_ns": pl.Int64, "calls": pl.Int64},
    "memory": {"recording": pl.Int32, "rank": pl.Int32, "name": pl.String, "peak_bytes": pl.Int64, "reserved_bytes": pl.Int64},
}  # fmt: skip


@dataclass(frozen=True)
class Samples:
    """Tables of one rank, or of all: a row per recording, rank, step and whatever the table is about.

    `cells` are the steps that count. Ops and kernels are by the step that launched them; `launch` is a kernel's grid.
    `link_ns` and `link_bytes`: of an op's device time, what copies between host and device took, and what they moved.
    `functions` are Python's, without the numbers of lines, and `inside` what called them.
    `waits` are the host's calls that wait for the device. `products` are matrix products and convolutions: on the device, or on the host where there is none.
    """

    cells: pl.DataFrame
    parts: pl.DataFrame
    names: pl.DataFrame
    ops: pl.DataFrame
    kernels: pl.DataFrame
    products: pl.DataFrame
    collectives: pl.DataFrame
    memory: pl.DataFrame
    waits: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SCHEMAS["waits"]))
    functions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SCHEMAS["functions"]))


@dataclass(frozen=True)
class Side:
    """One run: its samples, and its report in JSON form. Of several recordings it is the first one's, with the problems of all.

    `outside`: the share of the host's op time that lies in no step, where no device works: steps that do not wait for their work.
    """

    samples: Samples
    report: Mapping[str, Any]
    outside: float = 0.0
    paths: tuple[str, ...] = ()


def in_form(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The table with exactly its columns and types."""
    schema = _SCHEMAS[name]
    return frame.select(pl.col(column).cast(kind) for column, kind in schema.items())


def repeated(sides: Sequence[Side]) -> Side:
    """Recordings of one job as one run."""
    if len(sides) == 1:
        return sides[0]
    numbered = [
        Samples(
            **{
                each.name: getattr(side.samples, each.name).with_columns(
                    recording=pl.lit(number, dtype=pl.Int32)
                )
                for each in fields(Samples)
            }
        )
        for number, side in enumerate(sides)
    ]
    paths = tuple(side.report["profile"]["path"] for side in sides)
    problems = [
        problem
        for place, side in enumerate(sides)
        for problem in side.report["problems"]
        if not any(problem in before.report["problems"] for before in sides[:place])
    ]
    report = {**sides[0].report, "problems": problems}
    return Side(together(numbered), report, max(side.outside for side in sides), paths)


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
