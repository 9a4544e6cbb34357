"""The training steps of a trace: from markers, from an annotation that spans the loop, or from repetition.

A marker is ProfilerStep, StepTraceAnnotation, Trace(step_num=…) or Keras's. Markers that overlap are one step. Without
markers, an annotation that repeats and fills most of the time is the step (or the one that is asked for by
name); else what repeats on the main thread. Where each step begins and ends on a device: see windows.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.host.names import FRAMEWORK_ANNOTATION, INPUT_WORDS
from stepscope.analysis.steps.infer import infer_steps
from stepscope.analysis.steps.windows import devices_with_work, partial_steps, step_windows, steps_of_events
from stepscope.registers.policy.steps import ANNOTATION_FILLS
from stepscope.trace.trace import Trace

__all__ = ["Steps", "devices_with_work", "find_steps", "steps_of_events"]

_COUNTER = re.compile(r"[#\s_:/-]*\d+$")
_NO_STEPS = pl.DataFrame(
    schema={"step": pl.Int32, "track": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}
)


@dataclass(frozen=True)
class Steps:
    """`host`: step, track, start_ns, end_ns in time order. `windows`: device, step, start_ns, end_ns, partial."""

    source: str  # marker, annotation, inferred or none
    name: str | None
    host: pl.DataFrame
    windows: pl.DataFrame


def find_steps(trace: Trace, step_name: str | None = None) -> Steps:
    """The steps as the host marked or showed them, and each device's own windows of time for them."""
    source, name, host = _host_steps(trace, step_name)
    return Steps(source, name, host, step_windows(trace, host, partial_steps(trace, host)))


def _host_steps(trace: Trace, step_name: str | None) -> tuple[str, str | None, pl.DataFrame]:
    if step_name is not None:
        return "annotation", step_name, _annotated(trace, step_name)
    marked = trace.events.filter(pl.col("role") == "step")
    if len(marked):
        base = marked["name"].cast(pl.String).str.replace(_COUNTER.pattern, "").value_counts(sort=True)
        return "marker", str(base["name"][0]) or None, _marked(marked)
    repeated = _repeated_annotations(trace)
    if len(repeated) and repeated["fills"][0] >= ANNOTATION_FILLS:
        return "annotation", repeated["base"][0], _annotated(trace, repeated["base"][0])
    inferred = infer_steps(trace)
    if inferred is not None:
        return "inferred", None, inferred
    if len(repeated):
        return "annotation", repeated["base"][0], _annotated(trace, repeated["base"][0])
    return "none", None, _NO_STEPS


def _marked(marked: pl.DataFrame) -> pl.DataFrame:
    """One row for each marker; numbered in time order if the markers' own numbers are not unique."""
    rows = _outermost(
        marked.select("step", "track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    )
    if rows["step"].null_count() or rows["step"].n_unique() < len(rows):
        return rows.with_columns(step=pl.int_range(pl.len(), dtype=pl.Int32))
    return rows


def _outermost(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans in time order, without those that lie (mostly) in one before them: a step that is marked twice."""
    ordered = spans.sort("start_ns", "end_ns", descending=[False, True], maintain_order=True)
    middle = (pl.col("start_ns") + pl.col("end_ns")) // 2
    reached = pl.col("end_ns").cum_max().shift(1, fill_value=-(2**62))
    return ordered.filter((middle >= reached) & (pl.col("end_ns") > reached))


def _host_annotations(trace: Trace) -> pl.DataFrame:
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    found = trace.events.filter((pl.col("kind") == "annotation") & pl.col("track").is_in(host.implode()))
    return found.with_columns(base=pl.col("name").cast(pl.String).str.replace(_COUNTER.pattern, ""))


def _repeated_annotations(trace: Trace) -> pl.DataFrame:
    """base, fills: the user's annotations that repeat and are not input, those that fill most of the time first."""
    base = pl.col("base")
    found = _host_annotations(trace).filter(
        (base != "") & ~base.str.contains(FRAMEWORK_ANNOTATION) & ~base.str.contains(INPUT_WORDS)
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    return (
        found.group_by("base", "track")
        .agg(pl.len(), pl.col("dur_ns").sum(), extent=end.max() - pl.col("start_ns").min())
        .filter((pl.col("len") > 1) & (pl.col("extent") > 0))
        .with_columns(fills=(pl.col("dur_ns") / pl.col("extent")).clip(upper_bound=1.0))
        .sort("dur_ns", "len", "base", descending=[True, False, False])
    )


def _annotated(trace: Trace, name: str) -> pl.DataFrame:
    """The steps that an annotation marks. What happens between two of them leads up to the second."""
    found = _host_annotations(trace).filter(
        (pl.col("base") == name) | (pl.col("name").cast(pl.String) == name)
    )
    if found.is_empty():
        return _NO_STEPS
    busiest = found.group_by("track").agg(pl.col("dur_ns").sum()).sort("dur_ns", "track")["track"][-1]
    spans = found.filter(pl.col("track") == busiest).select(
        "track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    rows = _outermost(spans)
    begin = _first_start(trace, rows)
    rows = rows.with_columns(start_ns=pl.col("end_ns").shift(1, fill_value=begin))
    return rows.select(pl.int_range(pl.len(), dtype=pl.Int32).alias("step"), "track", "start_ns", "end_ns")


def _first_start(trace: Trace, rows: pl.DataFrame) -> int:
    """What leads up to the first step, as far as it was recorded, takes no longer than it does before the others."""
    first, track = int(rows["start_ns"][0]), rows["track"][0]
    lead = (rows["start_ns"] - rows["end_ns"].shift(1)).median()
    earliest = first - int(lead or 0)
    begun = trace.events.filter(
        pl.col("track") == track, pl.col("start_ns") >= earliest, pl.col("dur_ns") > 0
    )["start_ns"]  # fmt: skip
    return min(first, int(begun[0])) if len(begun) else first
