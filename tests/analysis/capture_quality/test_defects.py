"""Problems of the capture that the finished trace shows."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.capture_quality.defects import capture_problems
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.problems import Problem
from stepscope.trace.trace import Trace, TraceInfo
from tests.builders.tables import EventRow, trace_of_rows


def traced(events: list[EventRow], launches: list[tuple[int, int]]) -> Trace:
    """A trace of these events; launches are pairs of rows."""
    kernels = [place for place, event in enumerate(events) if event[1] == "kernel"]
    links = pl.DataFrame(launches, schema=["from", "to"], orient="row").with_columns(why=pl.lit("launch"))
    info = TraceInfo(format="kineto", framework="pytorch")
    return trace_of_rows(
        events, info, links=links, kernels=pl.DataFrame({"event": kernels}, schema={"event": pl.UInt32})
    )


def problems(trace: Trace) -> dict[str, Problem]:
    """What is wrong, by code."""
    return {problem.code: problem for problem in capture_problems(trace, find_steps(trace))}


def step(number: int, kernel_at: int = 500) -> list[EventRow]:
    """A step of one launch and its kernel."""
    start = number * 10_000
    return [
        (f"ProfilerStep#{number}", "annotation", 0, start, 9_000),
        ("cudaLaunchKernel", "runtime", 0, start + 100, 50),
        ("gemm", "kernel", 1, start + kernel_at, 1_000),
    ]


def test_a_good_capture() -> None:
    trace = traced([*step(1), *step(2), *step(3)], [(1, 2), (4, 5), (7, 8)])
    assert problems(trace) == {}


def test_one_step_and_none() -> None:
    assert list(problems(traced(step(1), [(1, 2)]))) == ["one-step"]
    assert list(problems(traced(step(1)[1:], [(0, 1)]))) == ["no-steps"]


def test_missing_kernels() -> None:
    found = problems(traced([*step(1), *step(2)[:2]], [(1, 2)]))["launches-without-work"]
    assert (found.count, found.severity) == (1, "warning")
    assert found.detail == "{count} of 2 launches (50 %) have no kernel in the profile."


def test_without_any_kernel_another_problem_says_it() -> None:
    assert "launches-without-work" not in problems(traced([*step(1)[:2], *step(2)[:2]], []))


def test_missing_launches() -> None:
    found = problems(traced([*step(1), *step(2)], [(1, 2)]))["work-without-launch"]
    assert found.count == 1


def test_clocks_that_disagree() -> None:
    early = traced([*step(1, kernel_at=-3_000), *step(2)], [(1, 2), (4, 5)])
    found = problems(early)["clock-inversion"]
    assert (found.count, found.severity) == (1, "warning")
    assert "by up to 3.10 µs" in found.detail
    assert "clock-inversion" not in problems(traced([*step(1, kernel_at=0), *step(2)], [(1, 2), (4, 5)]))


def test_kernels_that_nothing_links_are_not_missing() -> None:
    """Calls and kernels are there, and no id connects them: a weakness of the recorder, not a loss."""
    found = problems(traced([*step(1), *step(2)], []))
    assert "launches-without-work" not in found
    assert "None of {count} kernels is linked" in found["work-without-launch"].detail
