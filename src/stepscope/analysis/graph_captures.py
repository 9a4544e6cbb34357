"""Recordings of graphs that are captured, as a server does when it starts: they hold no step of the job."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.work import time_before
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.graphs import capture_spans, is_graph_launch
from stepscope.trace.trace import Trace


def only_captures(trace: Trace, steps: Steps) -> bool:
    """Whether most of every step is the capture of a graph, and the recording launches none.

    A loop that captures its graph again in each step launches it, too: there the captures are what slows it down.
    """
    spans, host = capture_spans(trace), steps.host
    if spans.is_empty() or host.is_empty() or is_graph_launch(trace.events).any():
        return False
    apart = _apart(spans)
    capturing = time_before(host["end_ns"], apart) - time_before(host["start_ns"], apart)
    return bool((capturing > MAJORITY * (host["end_ns"] - host["start_ns"])).all())


def _apart(spans: pl.DataFrame) -> pl.DataFrame:
    """The same moments in spans that do not overlap: several threads may capture at once."""
    reached = pl.col("end_ns").cum_max().shift(1)
    alone = spans.with_columns(start_ns=pl.max_horizontal("start_ns", reached))
    return alone.filter(pl.col("start_ns") < pl.col("end_ns"))
