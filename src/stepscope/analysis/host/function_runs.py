"""Runs of one traced function of TensorFlow that a step calls again and again: are they all alike, or does each do more?

A profile shows no data flow. Runs with equal ops and lengths may work on independent inputs, or each on the result of the
one before; runs that gain the same number of ops each time go over a sequence that grows.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.eager_calls import FUNCTION_CALL
from stepscope.analysis.host.names import INPUT_THREAD
from stepscope.analysis.host.tracks import by_track
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import LOOP_ITERATIONS, MAJORITY, NEARLY_ALL
from stepscope.registers.policy.repeated_work import EQUAL_RUNS
from stepscope.registers.policy.useless_work import MORE_OPS_ALIKE
from stepscope.trace.frames import filled, take, take_mean
from stepscope.trace.lookup import is_named
from stepscope.trace.trace import Trace

_CHANGES_STATE = r"^(Assign\w*Variable|ResourceApply|ResourceScatter|ResourceSparseApply)"


@dataclass(frozen=True)
class FunctionRuns:
    """`runs`: step, start_ns, end_ns, ops of the function's runs, in order."""

    name: str
    runs: pl.DataFrame
    changes_state: bool  # as a training step does, which no batch can stand for

    @property
    def per_step(self) -> float:
        """How often a step runs the function."""
        return len(self.runs) / self.runs["step"].n_unique()

    @property
    def are_equal(self) -> bool:
        """Whether in most steps nearly all runs execute the same number of ops, and take about as long."""
        length = pl.col("end_ns") - pl.col("start_ns")
        steps = self.runs.group_by("step", maintain_order=True).agg(
            same=(pl.col("ops") == pl.col("ops").median()).mean(),
            short=length.quantile(1 - NEARLY_ALL),
            long=length.quantile(NEARLY_ALL),
        )
        equal = steps.filter(pl.col("same") >= NEARLY_ALL, pl.col("long") <= EQUAL_RUNS * pl.col("short"))
        return len(equal) > MAJORITY * len(steps)

    @property
    def tokens(self) -> float | None:
        """Over how many items the mean run goes, if in most steps each run executes more ops than the one before, mostly as many more.

        TensorFlow records short ops or not, by what they took before: some runs gain more than the item brings.
        """
        more = pl.col("ops").diff()
        alike = more.is_between(more.median() / MORE_OPS_ALIKE, more.median() * MORE_OPS_ALIKE)
        steps = self.runs.group_by("step", maintain_order=True).agg(
            ops=pl.col("ops").mean(), more=more.median(), grows=(more > 0).mean(), alike=alike.mean()
        )
        growing = steps.filter(pl.col("grows") >= NEARLY_ALL, pl.col("alike") > MAJORITY)
        if len(growing) <= MAJORITY * len(steps):
            return None
        return take_mean(growing["ops"] / growing["more"])


def find_repeated_function(trace: Trace) -> FunctionRuns | None:
    """The function that takes the most time of those that a step which runs them runs many times."""
    events = trace.events
    calls = is_named(events, FUNCTION_CALL) & events["step"].is_not_null()
    if not calls.any():
        return None
    runs = events.filter(calls).select(
        "step", "name", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    often = runs.group_by("name", "step").agg(times=pl.len()).group_by("name").agg(pl.col("times").median())
    times = pl.col("end_ns") - pl.col("start_ns")
    by_name = runs.group_by("name", maintain_order=True).agg(ns=times.sum()).join(often, on="name")
    chosen = by_name.filter(pl.col("times") >= LOOP_ITERATIONS).sort("ns", descending=True)
    if chosen.is_empty():
        return None
    mine = runs.filter(pl.col("name") == chosen["name"][0]).sort("start_ns")
    ops = _ops(trace)
    changes = ops.filter(is_named(events, _CHANGES_STATE).gather(ops["id"]))
    counted = mine.with_columns(ops=_count_in(mine, ops["start_ns"]))
    return FunctionRuns(str(chosen["name"][0]), counted, bool(_count_in(mine, changes["start_ns"]).sum()))


def _ops(trace: Trace) -> pl.DataFrame:
    """id and start_ns of the ops on all threads but those that make input, in order."""
    events = trace.events
    input_track = by_track(trace, pl.col("thread").str.contains(INPUT_THREAD))
    is_op = (events["kind"] == "op") & ~filled(take(input_track, events["track"]))
    return events.select("id", "start_ns").filter(is_op).sort("start_ns")


def _count_in(runs: pl.DataFrame, starts: pl.Series) -> pl.Series:
    """How many of these moments, which are in order, each run has."""
    first, last = (
        starts.search_sorted(runs[end], side="left").cast(pl.Int64) for end in ("start_ns", "end_ns")
    )
    found: pl.Series = last - first
    return found
