"""Executions of a serving engine: phases, tokens, durations, gaps."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.serving.executions import Gaps, executions, gaps, phases_table, stalled
from tests.builders.inline import trace_of

# Two decodes, of which the first launches more work than its annotation lasts, and a prefill with an inner annotation.
SERVED = """
track     start  dur  name                                        kind        launches
main          0   20  step[DECODE bs=8]                           annotation  -
main          5    5  cudaGraphLaunch                             runtime     long
stream 7     10  100  long                                        kernel      -
main         50   20  step[DECODE bs=8]                           annotation  -
main        100   40  execute_context_1(?)_generation_0(0)        annotation  -
main        101   30  step[EXTEND bs=1 toks=64]                   annotation  -
over X      100   40  step[DECODE bs=8]                           annotation  -
"""


def test_rows() -> None:
    """The annotation on the device is not another execution; the inner one adds what the outer name leaves out."""
    rows = executions(trace_of(SERVED))
    assert rows["phase"].to_list() == ["decode", "decode", "prefill"]
    assert rows["dur_ns"].to_list() == [100_000, 20_000, 40_000]
    assert rows["tokens"].to_list() == [8, 8, 64]


def test_phases() -> None:
    rows = phases_table(executions(trace_of(SERVED))).rows()
    assert rows == [("decode", 2, 8.0, 16, 120_000, 120_000, 16), ("prefill", 1, 1.0, 64, 40_000, 40_000, 64)]


def test_a_stalled_execution_has_no_speed() -> None:
    """Its length says nothing of the engine. Only what the device itself is late with counts."""
    rows = executions(trace_of(SERVED))
    late = [("device_gap", 30_000, 90_000), ("device_gap", 51_000, 63_000)]
    slices = pl.DataFrame(
        [*late, ("sync", 101_000, 139_000)], schema=["part", "start_ns", "end_ns"], orient="row"
    )
    assert stalled(rows, slices).to_list() == [False, True, False]
    assert phases_table(rows, stalled(rows, slices)).rows()[0] == ("decode", 2, 8.0, 16, 120_000, 100_000, 8)


def test_gaps() -> None:
    """30 µs after the first, 30 after the second."""
    assert gaps(executions(trace_of(SERVED))) == Gaps(2, 60_000, 30_000, 140_000)


def test_nothing_served() -> None:
    rows = executions(
        trace_of("""
    track  start  dur  name         kind
    main       0   20  run_model_7  annotation
    """)
    )
    assert rows.is_empty()
    assert phases_table(rows).is_empty()
    assert gaps(rows) == Gaps(0, 0, None, 0)
