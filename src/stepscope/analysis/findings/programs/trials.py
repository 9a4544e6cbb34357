"""Device work that a compiler launches to find the fastest code, and that is gone with the compilation.

XLA tries its candidates on threads of their own, each as a program named after the fusion that it is for. What other threads launch
meanwhile is the job's: another program of the same step takes as long when nothing is compiled any more.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.program_runs import program_runs
from stepscope.analysis.host.causes import host_codes
from stepscope.native.host.lineage import COMPILE

_OF_JOB = r"^p?jit_|^pmap_"  # programs of functions, and of single ops


def find_trials(case: Case) -> pl.Series:
    """Whether each item of the plan is one, or a wait for one."""
    items, own = case.plan.items, _inside_own(case)
    runs = program_runs(case)
    if runs is None:
        return own
    mine = runs.work.filter(pl.col("program").str.contains(_OF_JOB))["event"]
    of_job = items["event"].is_in(mine.implode()).fill_null(False)
    by_job = items["track"].is_in(items["track"].filter(of_job).unique().implode())
    return (own | (_inside_any(case) & ~by_job)) & ~of_job


def _inside_any(case: Case) -> pl.Series:
    """Whether something is compiled at that moment, on any thread."""
    return _inside(case.plan.items["at"], _spans(case))


def _inside_own(case: Case) -> pl.Series:
    """Whether the thread that launches, or waits, is compiling itself."""
    items, spans = case.plan.items, _spans(case)
    found = pl.repeat(False, len(items), dtype=pl.Boolean, eager=True)
    for track in spans["track"].unique():
        during = _inside(items["at"], spans.filter(pl.col("track") == track))
        found = found | (during & (items["track"] == track))
    return found


def _inside(at: pl.Series, spans: pl.DataFrame) -> pl.Series:
    return within(at, spans["start_ns"], spans["end_ns"])


def _spans(case: Case) -> pl.DataFrame:
    """track, start_ns, end_ns of what compiles, by start."""
    compiling = case.trace.events.filter(host_codes(case.trace) == COMPILE)
    return compiling.select("track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")).sort(
        "start_ns"
    )
