"""What marks steps next time: by the profiler that wrote the file, and by the framework."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.capture_quality.step_marks import missing_steps
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.problems import Problem
from stepscope.trace.trace import TraceInfo
from tests.builders.tables import EventRow, trace_of_rows

ONE_OP: list[EventRow] = [("aten::add", "op", 0, 100, 50)]
UNUSED: EventRow = ("evaluate", "annotation", 0, 110, 10)


def said(info: TraceInfo, *more: EventRow) -> list[Problem]:
    """What is said of a recording in which nothing repeats."""
    trace = trace_of_rows([*ONE_OP, *more], info)
    return list(missing_steps(trace, find_steps(trace)))


@pytest.mark.parametrize(
    ("info", "marked_by"),
    [
        (TraceInfo(format="kineto", framework="pytorch"), "prof.step()"),
        (TraceInfo(format="xplane", framework="jax"), "jax.profiler.StepTraceAnnotation("),
        (TraceInfo(format="chrome", framework="jax"), "jax.profiler.StepTraceAnnotation("),
        (TraceInfo(format="xplane", framework="tensorflow"), "tf.profiler.experimental.Trace("),
        (TraceInfo(format="nsys", framework="pytorch"), "an NVTX range around each step"),
        (TraceInfo(format="nsys"), "an NVTX range around each step"),
        (TraceInfo(format="rocprof"), "a roctx range around each step"),
        (TraceInfo(format="kineto", framework="pytorch", capture={"backend": "torch"}), "stepscope.step()"),
        (TraceInfo(format="stepscope-ring", framework="tensorflow"), "stepscope.step()"),
        (TraceInfo(format="chrome"), "an annotation around each step"),
    ],
)
def test_the_advice_fits_the_recorder(info: TraceInfo, marked_by: str) -> None:
    found = said(info)
    assert [problem.code for problem in found] == ["no-steps"]
    assert marked_by in found[0].fix
    assert ("step_num" in found[0].fix) == (marked_by.endswith("("))


def test_step_marks_nothing_without_a_schedule() -> None:
    assert "schedule=" in said(TraceInfo(format="kineto", framework="pytorch"))[0].fix


@pytest.mark.parametrize("format_", ["flight_recorder", "memory_timeline", "pprof"])
def test_a_file_that_cannot_have_steps_does_not_lack_them(format_: str) -> None:
    assert said(TraceInfo(format=format_, framework="pytorch")) == []


def test_the_whole_recording_was_asked_for() -> None:
    trace = trace_of_rows(ONE_OP, TraceInfo(format="kineto", framework="pytorch"))
    assert list(missing_steps(trace, replace(find_steps(trace), confidence="high"))) == []


def test_an_annotation_can_be_named_only_where_there_is_one() -> None:
    without, with_one = (
        said(TraceInfo(format="kineto", framework="pytorch"), *more)[0] for more in ((), (UNUSED,))
    )
    assert without.detail == "There is no annotation, and nothing repeats."
    assert "--step-name" not in without.fix
    assert with_one.detail == "No annotation marks the steps, and nothing repeats."
    assert with_one.fix.endswith("name it with --step-name.")
