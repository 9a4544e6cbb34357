"""Where code of the user's is: in functions, and in the steps and annotations that a function opens which goes through all steps."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.host.functions import where
from stepscope.analysis.host.loops import Loops, find_loops
from stepscope.trace.trace import Trace
from tests.analysis.host.test_loops import launch
from tests.builders.inline import trace_of

HEAD = "track  start  dur  name  kind  launches"
MAIN = "main  0  9000  train.py(3): main  python  -"
STEP = "main  10  2000  ProfilerStep#1  annotation  -"
NEXT = "main  3000  2000  ProfilerStep#2  annotation  -"


def loops_of(*rows: str) -> tuple[Trace, Loops]:
    """The loops of these rows."""
    trace = trace_of("\n".join([HEAD, *rows]))
    return trace, find_loops(trace)


def turns(first: int, count: int, name: str = "aten::mm") -> list[str]:
    """So many ops of a name, each with a kernel, one every 40 µs."""
    return [row for k in range(count) for row in launch(first + 40 * k, name)]


def test_a_loop_in_the_step_itself_is_found_in_each_step_and_placed_in_main() -> None:
    trace, loops = loops_of(MAIN, STEP, *turns(20, 10), NEXT, *turns(3010, 10))
    names = trace.events["name"].gather(loops.found["frame"]).cast(pl.String).to_list()
    assert names == ["ProfilerStep#1", "ProfilerStep#2"]
    assert loops.found["iterations"].to_list() == [10.0, 10.0]
    assert [(place.file, place.line) for place in where(trace, loops.found["frame"])] == [("train.py", 3)]


def test_steps_do_not_add_up_to_a_loop() -> None:
    rows = [MAIN]
    for number in range(12):
        rows += [f"main  {10 + 700 * number}  690  ProfilerStep#{number}  annotation  -"]
        rows += turns(20 + 700 * number, 5)
    assert loops_of(*rows)[1].found.is_empty()


@pytest.mark.parametrize("times", [2, 30])
def test_a_function_that_goes_through_steps_makes_the_same_calls_in_each(times: int) -> None:
    """Here another thread marks the steps, as a recorder that infers them does."""
    rows = ["main  0  70000  train.py(3): main  python  -"]
    for number in range(times):
        start = 10 + 2000 * number
        rows += [f"marks  {start}  1990  ProfilerStep#{number}  annotation  -"]
        rows += turns(start + 10, 10)
    found = loops_of(*rows)[1].found
    assert found.is_empty() == (times > 2)


def test_layers_of_a_model_are_no_loop_where_no_frames_were_recorded() -> None:
    """Another thread may have frames; then nothing is around the annotation, and nothing in it."""
    assert loops_of(STEP, *turns(20, 10))[1].found.is_empty()
    other = "loader  0  9000  data.py(3): load  python  -"
    assert loops_of(other, STEP, *turns(20, 10))[1].found.is_empty()


def test_what_began_before_the_recording_is_not_in_it() -> None:
    """As in profiles of JAX: main is not recorded, but what the step calls is."""
    calls = [f"main  {45 + 40 * k}  2  train.py(9): note  python  -" for k in range(10)]
    assert loops_of(STEP, *turns(20, 10), *calls)[1].found["iterations"].to_list() == [10.0]


@pytest.mark.parametrize("name", ["forward", "train/rollout"])
def test_an_annotation_stands_for_a_function(name: str) -> None:
    outside = launch(1500, "aten::sum")
    trace, loops = loops_of(MAIN, STEP, f"main  15  600  {name}  annotation  -", *turns(20, 10), *outside)
    assert loops.found.select("iterations", "whole").rows() == [(10.0, True)]
    assert trace.events["name"].gather(loops.found["frame"]).cast(pl.String).to_list() == [name]
    assert [place.function for place in where(trace, loops.found["frame"])] == ["main"]


def test_two_annotations_are_two_functions() -> None:
    stages = ["main  15  400  encode  annotation  -", "main  505  400  decode  annotation  -"]
    assert loops_of(MAIN, STEP, *stages, *turns(20, 5), *turns(510, 5))[1].found.is_empty()


def test_an_annotation_of_each_turn_changes_nothing() -> None:
    marks = [f"main  {15 + 40 * k}  30  expert  annotation  -" for k in range(10)]
    trace, loops = loops_of(MAIN, STEP, *marks, *turns(20, 10))
    assert trace.events["name"].gather(loops.found["frame"]).cast(pl.String).to_list() == ["ProfilerStep#1"]
    assert loops.found["iterations"].to_list() == [10.0]
    few = [row for k in range(7) for row in (marks[k], *launch(20 + 40 * k, "aten::mm"))]
    assert loops_of(MAIN, STEP, *few)[1].found.is_empty()


@pytest.mark.parametrize("inside", ["torch/nn/modules/module.py(1751): _call_impl", "nn.Module: Net_0"])
def test_an_annotation_that_the_framework_opens_is_none(inside: str) -> None:
    call = f"main  14  700  {inside}  python  -"
    assert loops_of(MAIN, STEP, call, "main  15  600  layers  annotation  -", *turns(20, 10))[
        1
    ].found.is_empty()


def test_annotations_of_the_framework_are_none() -> None:
    update = "main  15  600  Optimizer.step#SGD.step  annotation  -"
    assert loops_of(MAIN, STEP, update, *turns(20, 10))[1].found.is_empty()


def test_functions_that_a_step_calls_must_be_as_many_as_those_of_a_function() -> None:
    def calls(count: int) -> list[str]:
        blocks = [f"main  {15 + 40 * k}  30  net.py(30): block  python  -" for k in range(count)]
        return [MAIN, STEP, *blocks, *turns(20, count)]

    assert loops_of(*calls(12))[1].found.is_empty()
    assert loops_of(*calls(30))[1].found["iterations"].to_list() == [30.0]


def test_what_the_step_does_before_and_behind_the_loop_is_not_in_it() -> None:
    beside = [
        "main  12  6  data.py(5): load  python  -",
        "main  45  2  train.py(30): note  python  -",
        "main  800  90  train.py(40): log  python  -",
    ]
    trace, loops = loops_of(MAIN, STEP, *turns(20, 10), *beside)
    assert loops.found["whole"].to_list() == [True]
    inside = set(trace.events["name"].cast(pl.String).filter(loops.loop_of.is_not_null()))
    assert "train.py(30): note" in inside
    assert not {"data.py(5): load", "train.py(40): log"} & inside
