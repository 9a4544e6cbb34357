"""How a rank's calls and work are put in order, and what a call had to wait for."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.collectives.calls import CALLS, recorded_calls
from stepscope.ranks.job.course import Course, course_of
from stepscope.ranks.job.readiness import ready_ns
from tests.builders.inline import trace_of

US = 1_000
WINDOWS = pl.DataFrame(
    {"step": [7], "start_ns": [100 * US], "end_ns": [200 * US]}, schema_overrides={"step": pl.Int32}
)


def call(
    event: int, name: str, start: int, end: int, ready: int | None = None, stream: int = 0
) -> dict[str, object]:
    return {
        "event": event, "name": name, "group": "g", "group_size": 2, "group_ranks": "[0, 1]", "bytes": 8, "device": 0, "stream": stream,
        "on_host": False, "start_ns": start * US, "dur_ns": (end - start) * US, "step": 7,
        "ready_ns": None if ready is None else ready * US,
    }  # fmt: skip


def course(calls: list[dict[str, object]], slices: list[tuple[int, int, str]]) -> Course:
    schema = {**CALLS, "ready_ns": pl.Int64}
    frame = pl.DataFrame(
        [(start * US, end * US, part) for start, end, part in slices],
        schema=["start_ns", "end_ns", "part"],
        orient="row",
    )
    return course_of(pl.DataFrame(calls, schema=schema), frame, WINDOWS, 0)


def test_a_call_behind_another_was_ready_when_its_work_was_done() -> None:
    calls = [call(0, "all_reduce", 120, 160, 120), call(1, "all_reduce", 161, 190, 130)]
    work = [
        (100, 120, "compute"),
        (120, 130, "compute"),
        (130, 160, "compute"),
        (160, 190, "collective"),
        (190, 200, "compute"),
    ]
    found = course(calls, work)
    before = found.work.filter(pl.col("node") <= found.calls["after"][1])
    assert before["compute_ns"].sum() == 30 * US  # not the 61 after which it began


def test_a_rank_that_waits_for_something_else_does_not_wait_for_what_it_sent() -> None:
    calls = [call(0, "send", 110, 140, stream=1), call(1, "recv", 110, 170, stream=2)]
    found = course(calls, [(100, 110, "compute"), (110, 170, "collective"), (170, 200, "compute")])
    assert found.calls.sort("stream")["resumes"].is_null().to_list() == [True, False]


def test_a_first_step_begins_with_what_is_received_before_its_first_kernel() -> None:
    found = course([call(0, "recv", 60, 99)], [(100, 200, "compute")])
    assert len(found.calls) == 1 and found.calls["resumes"].null_count() == 0
    assert found.work["compute_ns"].sum() == 100 * US


def test_what_was_not_recorded_is_no_work() -> None:
    found = course(
        [call(0, "all_reduce", 150, 200)],
        [(100, 130, "unrecorded"), (130, 150, "compute"), (150, 200, "collective")],
    )
    assert found.work.select(pl.sum_horizontal("compute_ns", "input_ns", "host_ns").sum()).item() == 20 * US
    assert found.step_ns == 70 * US


def test_a_call_is_ready_when_what_was_launched_before_it_is_done() -> None:
    reduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    trace = trace_of(
        f"""
        track      start  dur  name              kind     launches
        main           1    1  cudaLaunchKernel  runtime  gemm
        main           3    1  cudaLaunchKernel  runtime  {reduce}
        main           5    1  cudaLaunchKernel  runtime  late
        stream 7      10   20  gemm              kernel   -
        stream 7      30   50  late              kernel   -
        stream 20     60   10  {reduce}          kernel   -
        """
    )
    calls = recorded_calls(trace)
    assert len(calls) == 1 and ready_ns(trace, calls).to_list() == [30 * US]
