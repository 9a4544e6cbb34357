"""Collectives of programs that run behind the host: which run they are of, and which step launched it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.collectives.calls import recorded_calls
from stepscope.trace.schema import Text
from stepscope.trace.trace import Trace
from tests.builders.gpu_trace import gpu_trace

AGREED = 386_745_034
# Two steps of the host, and two runs of their program after both.
LATER = """
    host | 0   | 10 | annotation | ProfilerStep#5
    host | 2   | 5  | span       | PjitFunction(step)
    host | 3   | 3  | span       | PjitFunction(step)
    host | 20  | 10 | annotation | ProfilerStep#6
    host | 22  | 5  | span       | PjitFunction(step)
    host | 100 | 50 | op         | all-reduce.2
    host | 200 | 50 | op         | all-reduce.2
    """


def calls(table: str, first_run: int = AGREED) -> pl.DataFrame:
    """Step and number of the collectives, which are of one run after the other."""
    trace = gpu_trace(table, device={})
    ops = trace.events.filter(pl.col("kind") == "op")["id"]
    runs = {"event": ops, "key": pl.Series(["run_id"] * len(ops), dtype=Text)}
    numbers = pl.DataFrame({**runs, "value": [first_run + at for at in range(len(ops))]})
    texts = pl.DataFrame(
        {
            "event": ops,
            "key": pl.Series(["hlo_module"] * len(ops), dtype=Text),
            "value": pl.Series(["jit_step"] * len(ops), dtype=Text),
        }
    )
    return recorded_calls(Trace(dict(trace.tables), {"stats_int": numbers, "stats_text": texts}))


def test_runs_belong_to_the_steps_that_launched_them() -> None:
    """In the order of the launches; a call inside a call of the same function is no other."""
    found = calls(LATER)
    assert found["step"].to_list() == [5, 6]
    assert found["sequence"].to_list() == [AGREED, AGREED + 1]


def test_numbers_that_a_process_counted_alone_match_nothing() -> None:
    assert calls(LATER, first_run=3)["sequence"].to_list() == [None, None]


def test_more_runs_than_launches_tell_no_step() -> None:
    """Some were launched before the recording began: those outside of steps are left out."""
    more = LATER + "host | 300 | 50 | op | all-reduce.2\n    host | 5 | 1 | op | all-reduce.2\n"
    assert calls(more)["step"].to_list() == [5]
