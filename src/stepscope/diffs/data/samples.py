"""The cost of each step of a run, as small tables that can be concatenated over ranks: the input of a diff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import polars as pl

from stepscope.reports.model.report import Problem, Report
from stepscope.trace.frames import Schema, conform, empty

# `recording` distinguishes the recordings of one side, where it has several.
CELL = {"recording": pl.Int32, "rank": pl.Int32, "step": pl.Int32}
TableName = Literal[
    "cells",
    "parts",
    "names",
    "ops",
    "kernels",
    "products",
    "waits",
    "functions",
    "collectives",
    "memory",
    "clip",
]
HELD = " at "  # between what is held and the function that holds it, in names of memory
SCHEMAS: dict[TableName, Schema] = {
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
    "clip": {"recording": pl.Int32, "rank": pl.Int32, "name": pl.String, "ns": pl.Int64, "calls": pl.Int64, "squares": pl.Float64},
    "memory": {"recording": pl.Int32, "rank": pl.Int32, "name": pl.String, "peak_bytes": pl.Int64, "reserved_bytes": pl.Int64},
}  # fmt: skip


@dataclass(frozen=True)
class Samples:
    """Tables of one rank, or of all: a row per recording, rank, step and subject of the table.

    `cells` are the steps that count. Ops and kernels belong to the step that launched them; `launch` is a kernel's grid.
    `link_ns` and `link_bytes`: the part of an op's device time spent in copies between host and device, and the bytes they moved.
    `functions` are Python functions without line numbers; `inside` is the caller.
    `clip` has all kernels of the recording, in a step or not, with the sum of their squared durations.
    `waits` are host calls that wait for the device. `products` are matrix products and convolutions: on the device, or on the
    host where there is no device.
    """

    cells: pl.DataFrame
    parts: pl.DataFrame
    names: pl.DataFrame
    ops: pl.DataFrame
    kernels: pl.DataFrame
    products: pl.DataFrame
    collectives: pl.DataFrame
    memory: pl.DataFrame
    waits: pl.DataFrame = field(default_factory=lambda: empty(SCHEMAS["waits"]))
    functions: pl.DataFrame = field(default_factory=lambda: empty(SCHEMAS["functions"]))
    clip: pl.DataFrame = field(default_factory=lambda: empty(SCHEMAS["clip"]))

    def table(self, name: TableName) -> pl.DataFrame:
        """The table of that name."""
        frame: pl.DataFrame = getattr(self, name)
        return frame


@dataclass(frozen=True)
class Side:
    """One run: its samples and its report. With several recordings the report is that of the first, with the problems of all.

    `outside`: the share of host op time that falls in no step, where there is no device: steps that end before their work does.
    """

    samples: Samples
    report: Report
    outside: float = 0.0
    paths: tuple[str, ...] = ()


def conform_table(name: TableName, frame: pl.DataFrame) -> pl.DataFrame:
    """The table with exactly its columns and types."""
    return conform(frame, SCHEMAS[name])


def combine_recordings(sides: Sequence[Side]) -> Side:
    """Recordings of one job as one run."""
    if len(sides) == 1:
        return sides[0]
    numbered = [_number_recording(side.samples, number) for number, side in enumerate(sides)]
    report = msgspec.structs.replace(sides[0].report, problems=_collect_problems(sides))
    paths = tuple(side.report.profile.path for side in sides)
    return Side(combine_ranks(numbered), report, max(side.outside for side in sides), paths)


def _number_recording(samples: Samples, number: int) -> Samples:
    recording = pl.lit(number, dtype=pl.Int32).alias("recording")
    return Samples(**{name: frame.with_columns(recording) for name, frame in vars(samples).items()})


def _collect_problems(sides: Sequence[Side]) -> list[Problem]:
    """The problems of all recordings; one that an earlier recording has as well is listed once."""
    return [
        problem
        for place, side in enumerate(sides)
        for problem in side.report.problems
        if not any(problem in before.report.problems for before in sides[:place])
    ]


def combine_ranks(ranks: Sequence[Samples]) -> Samples:
    """The samples of all ranks as one."""
    frames: dict[str, pl.DataFrame] = {
        name: pl.concat([empty(schema), *(conform(rank.table(name), schema) for rank in ranks)])
        for name, schema in SCHEMAS.items()
    }
    return Samples(**frames)
