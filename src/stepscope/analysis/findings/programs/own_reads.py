"""Values that a compiled program reads by itself, as to decide whether a loop in it has another turn: no code of the job asks for them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.program_runs import program_runs
from stepscope.native.host import replay as native
from stepscope.registers.policy.host_code import CONDITION_BYTES_MOST
from stepscope.trace.frames import take


def own_reads(case: Case) -> pl.Series:
    """For each item of the plan whether it is such a copy to the host, or a wait for one.

    It is on a stream of the program's kernels and between them. What the job reads is copied on a stream of its own.
    """
    items = case.plan.items
    copies = _small_copies(case)
    runs = program_runs(case) if len(copies) else None
    if runs is None:
        return pl.repeat(False, len(items), dtype=pl.Boolean, eager=True)
    events = case.trace.events
    work = runs.work.select("event", "run", "start_ns", track=events["track"].gather(runs.work["event"]))
    work = work.with_columns(is_kernel=take(events["kind"] == "kernel", work["event"])).sort("start_ns")
    before, after = (pl.col("is_kernel").cum_max(reverse=last).over("run", "track") for last in (False, True))
    own = work.filter(pl.col("event").is_in(copies.implode()), before, after)["event"]
    is_copy = pl.col("event").is_in(own.implode()).fill_null(False)
    is_wait = pl.col("kind") == native.WAIT
    awaited = pl.when(~is_wait).then(is_copy).forward_fill().fill_null(False)
    found: pl.Series = items.select(awaited).to_series()
    return found


def _small_copies(case: Case) -> pl.Series:
    small = (pl.col("bytes") <= CONDITION_BYTES_MOST) & (pl.col("direction").cast(pl.String) == "DtoH")
    found: pl.Series = case.trace.copies.filter(small)["event"]
    return found
