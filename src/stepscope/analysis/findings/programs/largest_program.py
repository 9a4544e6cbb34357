"""The program that a step of JAX is about, where it calls a few: with the others inside of it, its call would be the only one."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.program_runs import program_runs
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, name_call
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import at_or_inside

_PREFIX = "jit_"


def in_largest_program(case: Case) -> pl.Series:
    """For every event whether it is a call of the program with the most work, or inside of one; without work, the longest calls."""
    events = case.trace.events
    return at_or_inside(events, events["name"].cast(pl.String).eq_missing(pl.Series([call_of_largest(case)])))


def call_of_largest(case: Case) -> str | None:
    """The name of its calls."""
    events, runs = case.trace.events, program_runs(case)
    if runs is None:
        calls = events.filter(is_named(events, PROGRAM_CALLS), pl.col("step").is_not_null())
        ns = calls.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum())
        return _longest(ns, "name")
    work = runs.work.with_columns(dur_ns=events["dur_ns"].gather(runs.work["event"]))
    name = _longest(work.group_by("program").agg(pl.col("dur_ns").sum()), "program")
    return name and name_call(name.removeprefix(_PREFIX))


def _longest(ns: pl.DataFrame, column: str) -> str | None:
    ordered = ns.sort("dur_ns", column, descending=[True, False])
    return None if ordered.is_empty() else str(ordered[column][0])
