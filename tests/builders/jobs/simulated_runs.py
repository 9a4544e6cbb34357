"""Runs of which only figures exist: steps that are slow on all ranks at once, ranks that differ, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import polars as pl

from stepscope.diffs.data.samples import SCHEMAS, Samples, Side, conform_table
from stepscope.reports.model.report import Profile, Report, Steps
from stepscope.trace.frames import empty

STEP_NS = 100_000_000
# The share of a step of each part.
PARTS = {"compute": 0.7, "collective": 0.2, "dispatch": 0.1}
_EMPTY = {name: empty(schema) for name, schema in SCHEMAS.items()}


@dataclass(frozen=True)
class Job:
    """What runs of it vary by, as shares of the step: from run to run, from step to step, from rank to rank, and beyond."""

    ranks: int = 1
    steps: int = 10
    by_run: float = 0.0
    by_step: float = 0.03
    by_rank: float = 0.01
    by_cell: float = 0.01


def simulate_run(job: Job, dice: Random, *, longer: float = 1.0, recordings: int = 1) -> Side:
    """Recordings of the job, `longer` than usual by that factor."""
    cells = [cell for number in range(recordings) for cell in _draw_cells(job, dice, longer, number)]
    report = Report(
        profile=Profile(path=f"run {dice.random()}", ranks=list(range(job.ranks))),
        steps=Steps(source="marker", count=job.steps),
    )
    return Side(_collect(cells), report)


def _draw_cells(job: Job, dice: Random, longer: float, number: int) -> Iterator[tuple[int, int, int, int]]:
    """recording, rank, step, ns."""
    usual = longer * (1 + dice.gauss(0, job.by_run))
    steps = [dice.gauss(0, job.by_step) for _ in range(job.steps)]
    for rank in range(job.ranks):
        own = dice.gauss(0, job.by_rank) if job.ranks > 1 else 0.0
        for step, slow in enumerate(steps):
            yield number, rank, step, round(STEP_NS * usual * (1 + slow + own + dice.gauss(0, job.by_cell)))


def _collect(cells: list[tuple[int, int, int, int]]) -> Samples:
    frame = pl.DataFrame(cells, schema=SCHEMAS["cells"], orient="row")
    shares = pl.DataFrame({"part": list(PARTS), "share": list(PARTS.values())})
    parts = shares.join(frame, how="cross").with_columns(
        ns=(pl.col("share") * pl.col("ns")).round().cast(pl.Int64)
    )
    return Samples(**(_EMPTY | {"cells": frame, "parts": conform_table("parts", parts)}))
