"""The work of the device that belongs to some instructions of a compiled program."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.xla.ops import Program, events_of_programs, with_instructions


def part_of_program(case: Case, name: str, hlo: bytes, instructions: Collection[str]) -> pl.DataFrame:
    """event, instruction, run, step, start_ns of the kernels and copies of these instructions in the steps, in order."""
    rows = events_of_programs(case.trace).filter(pl.col("device") == case.device, pl.col("module") == name)
    if rows.is_empty() or not instructions:
        return rows.with_columns(step=pl.lit(None, pl.Int32)).select(
            "event", "instruction", "run", "step", "start_ns"
        )[:0]
    known = with_instructions(Program(hlo, name), rows).unique("event", keep="first")
    rows = rows.drop("instruction").join(known, on="event", how="left", maintain_order="left")
    rows = rows.with_columns(step=case.trace.events["step"].gather(rows["event"])).sort("start_ns")
    # Copies and kernels of libraries that nothing tells are of the part that they are inside of.
    is_mine = pl.col("instruction").is_in(list(instructions))
    before, after = (getattr(is_mine, way)().over("run") for way in ("forward_fill", "backward_fill"))
    mine = rows.filter(pl.coalesce(is_mine, before & after).fill_null(False)).drop_nulls("step")
    return mine.select("event", "instruction", "run", "step", "start_ns")
