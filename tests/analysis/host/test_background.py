"""The loop that waits for workers of its own: what they make is its input."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.host.background import waits_for_workers
from tests.builders.cases import case_of_text, findings_of, gemm, steps
from tests.builders.inline import trace_of

RESULT = "/usr/lib/python3.12/concurrent/futures/_base.py(428): result"
QUEUE = "lib/python3.12/queue.py(154): get"
MAKES = "worker  0  690  job.py(48): unpack  python  -"


def waiting(frame: str) -> list[str]:
    """Steps of 1 ms that wait 700 µs in this call, while a thread unpacks; then the device works."""
    return steps(
        f"main  0  700  {frame}  python  -",
        "main  5  690  <method 'acquire' of '_thread.lock' objects>  python  -",
        MAKES,
        *gemm(700, 285),
    )


@pytest.mark.parametrize(
    "frame",
    [RESULT, QUEUE, "$_base.py:428 result", "$queue.py:154 get", "multiprocessing/pool.py(853): next"],
)
def test_what_the_loop_takes_from_its_workers_is_input_and_named_after_what_they_do(frame: str) -> None:
    slices = case_of_text(waiting(frame)).all_slices.filter(pl.col("part") == "input")
    assert int(slices["ns"].sum()) == pytest.approx(3 * 690_000, rel=0.05)
    assert set(slices["name"].cast(pl.String)) >= {"job.py(48): unpack"}
    found = {each.code: each for each in findings_of(waiting(frame))}
    assert found["input-bound"].speedup.mid > 2
    assert "host-python" not in found


def test_the_replay_has_it_as_input_too() -> None:
    """It is nothing that launching in another way or sending less would shorten."""
    by_cause = case_of_text(waiting(RESULT)).plan.host.group_by("cause").agg(pl.col("ns").sum())
    assert dict(by_cause.iter_rows())["input"] == pytest.approx(3 * 700_000, rel=0.05)


@pytest.mark.parametrize("frame", ["job.py(12): result", "lib/python3.12/threading.py(1114): join"])
def test_other_waits_are_none(frame: str) -> None:
    case = case_of_text(waiting(frame))
    assert not waits_for_workers(case.trace).any()


def test_threads_that_wait_for_work_are_left_out() -> None:
    idle = f"worker  0  990  {QUEUE}  python  -"
    case = case_of_text(steps("main  0  700  job.py(9): step  python  -", idle, *gemm(700, 285)))
    assert not waits_for_workers(case.trace).any()
    assert "input" not in case.all_slices["part"].cast(pl.String).to_list()


def test_without_launches_no_thread_is_known_for_the_loop() -> None:
    trace = trace_of(
        f"""
        track  start  dur  name  kind
        main  0  700  {QUEUE}  python
        """
    )
    assert not waits_for_workers(trace).any()
