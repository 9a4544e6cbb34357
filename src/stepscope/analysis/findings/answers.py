"""Results that a step of inference ends with: the host reads them since they are what it was asked for.

Such a wait stays, whatever else of the step becomes faster. A loss or another single number is not meant, nor what training reads.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.serving.workload import TRAINING
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.native.host import replay as native
from stepscope.registers.policy.compute import LARGEST_NUMBER_BYTES

_GRADIENT = b"transpose(jvp"  # in the code of a program that JAX derived


def answer_waits(case: Case) -> pl.Series:
    """For each item of the plan whether it is a wait for such a result: behind all work of its step but the copy of the result."""
    items = case.plan.items
    if not infers(case):
        return pl.repeat(False, len(items), dtype=pl.Boolean, eager=True)
    copies = case.trace.copies.select("event", "bytes", direction=pl.col("direction").cast(pl.String))
    known = items.join(copies.unique("event"), on="event", how="left", maintain_order="left")
    place = pl.col("last").cum_sum().shift(1, fill_value=0)
    known = known.with_columns(place=place, is_result=pl.col("direction").eq_missing(pl.lit("DtoH")))
    works = (pl.col("device_ns") > 0) & ~pl.col("is_result")
    until = pl.col("item").filter(works).max().over("place")
    known = known.with_columns(is_behind=(pl.col("item") > until).fill_null(False))
    read = pl.col("bytes").filter(pl.col("is_result") & pl.col("is_behind")).max().over("place")
    waits = (pl.col("kind") == native.WAIT) & pl.col("is_behind") & (read > LARGEST_NUMBER_BYTES)
    return known.select(waits.fill_null(False)).to_series()


def infers(case: Case) -> bool:
    """Whether nothing trains: by the names of the work, or where programs hide these, by their code.

    Where graphs hide most of the work, no name may say so: what trains reads a loss, and an array is then taken for the result.
    """
    if case.workload is not None or not case.runs_programs:
        return case.workload != TRAINING
    codes = [hlo for _, _, hlo in programs_that_ran(case.trace)]
    return bool(codes) and not any(_GRADIENT in hlo for hlo in codes)
