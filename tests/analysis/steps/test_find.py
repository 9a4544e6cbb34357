"""Steps: from markers and annotations, and where they begin and end on a device."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.steps.find import find_steps, steps_of_events
from stepscope.errors import StepscopeError
from tests.builders.inline import trace_of, windows_of


def test_a_step_ends_with_its_last_work_and_the_next_begins_there() -> None:
    steps = find_steps(
        trace_of(
            """
            track     start  dur  name              kind        launches
            main          0   10  ProfilerStep#4    annotation  -
            main          5    1  cudaLaunchKernel  runtime     a
            main         10   30  ProfilerStep#5    annotation  -
            main         15    1  cudaLaunchKernel  runtime     b
            stream 7      6   14  a                 kernel      -
            stream 7     20    5  b                 kernel      -
            """
        )
    )
    assert (steps.source, steps.name) == ("marker", "ProfilerStep")
    assert windows_of(steps) == [(4, 0, 20), (5, 20, 40)]


def test_the_first_step_begins_behind_the_backlog() -> None:
    steps = find_steps(
        trace_of(
            """
            track     start  dur  name              kind        launches
            main         10   30  ProfilerStep#0    annotation  -
            main         12    1  cudaLaunchKernel  runtime     own
            stream 7      0   25  of the warm-up    kernel      -
            stream 7     25   20  own               kernel      -
            """
        )
    )
    assert windows_of(steps) == [(0, 25, 45)]


def test_work_on_a_side_stream_does_not_move_the_boundary() -> None:
    steps = find_steps(
        trace_of(
            """
            track     start  dur  name              kind        launches
            main          0   40  ProfilerStep#0    annotation  -
            main          5    1  cudaLaunchKernel  runtime     gemm
            main          8    1  cudaMemcpyAsync   runtime     Memcpy
            stream 7      6   30  gemm              kernel      -
            stream 9     30   60  Memcpy            copy        -
            """
        )
    )
    assert windows_of(steps) == [(0, 0, 40)]


def test_a_step_that_is_marked_twice_counts_once() -> None:
    steps = find_steps(
        trace_of(
            """
            track   start  dur  name   kind        role  step
            main        0   10  train  annotation  step  3
            worker      1    8  inner  annotation  step  3
            main       10   10  train  annotation  step  4
            over 0     12   10  train  annotation  step  4
            """
        )
    )
    assert windows_of(steps) == [(3, 0, 10), (4, 10, 20)]


def test_markers_whose_numbers_repeat_are_numbered_in_time_order() -> None:
    steps = find_steps(
        trace_of(
            """
            track  start  dur  name   kind        role  step
            main       0   10  train  annotation  step  0
            main      10   10  train  annotation  step  1
            main      20    5  eval   annotation  step  0
            """
        )
    )
    assert windows_of(steps) == [(0, 0, 10), (1, 10, 20), (2, 20, 25)]
    assert steps.name == "train"


LOOP = """
    track  start  dur  name          kind
    main       0    5  aten::randn   op
    main       5   90  train_step    annotation
    main      10   20  forward       annotation
    main     100    5  aten::randn   op
    main     105   90  train_step    annotation
    main     110   20  forward       annotation
    main     200    5  aten::randn   op
    main     205   90  train_step    annotation
    main     210   20  forward       annotation
    """


def test_an_annotation_that_fills_the_loop_is_the_step() -> None:
    steps = find_steps(trace_of(LOOP))
    assert (steps.source, steps.name) == ("annotation", "train_step")
    assert windows_of(steps) == [(0, 0, 95), (1, 95, 195), (2, 195, 295)]


def test_an_annotation_can_be_chosen_by_name() -> None:
    steps = find_steps(trace_of(LOOP), "forward")
    assert (steps.source, steps.name) == ("annotation", "forward")
    assert [step for step, *_ in windows_of(steps)] == [0, 1, 2]


def test_a_name_that_nothing_has_gives_no_steps() -> None:
    assert find_steps(trace_of(LOOP), "no such thing").source == "whole"


def test_an_annotation_can_be_chosen_by_a_pattern() -> None:
    steps = find_steps(trace_of(LOOP), "^(train|eval)_")
    assert [step for step, *_ in windows_of(steps)] == [0, 1, 2]


def test_a_pattern_that_is_none_says_so() -> None:
    with pytest.raises(StepscopeError, match="not a regular expression"):
        find_steps(trace_of(LOOP), "train(")


def test_a_numbered_annotation_repeats_too() -> None:
    steps = find_steps(
        trace_of(
            """
            track  start  dur  name     kind
            main       0   95  epoch 1  annotation
            main     100   95  epoch 2  annotation
            """
        )
    )
    assert (steps.source, steps.name, len(steps.host)) == ("annotation", "epoch", 2)


def test_a_piece_at_the_end_is_no_step() -> None:
    rows = [f"main  {100 * step + 10 * place}  5  aten::mm  op" for step in range(3) for place in range(1, 9)]
    rows += [f"main  {100 * step}  100  ProfilerStep#{step}  annotation" for step in range(3)]
    rows += ["main  300  20  ProfilerStep#3  annotation", "main  310  5  aten::mm  op"]
    steps = find_steps(trace_of("\n".join(["track  start  dur  name  kind", *rows])))
    assert steps.windows["step"].to_list() == [0, 1, 2]
    assert steps.pieces == 1


def test_an_event_belongs_to_the_step_that_launched_it() -> None:
    trace = trace_of(
        """
        track     start  dur  name              kind        launches
        main          0   10  ProfilerStep#4    annotation  -
        main          5    1  cudaLaunchKernel  runtime     a
        main         10   30  ProfilerStep#5    annotation  -
        main         15    1  cudaLaunchKernel  runtime     b
        main         50    1  cudaLaunchKernel  runtime     c
        stream 7     16   14  a                 kernel      -
        stream 7     30    5  b                 kernel      -
        stream 7     35    5  c                 kernel      -
        """
    )
    step = steps_of_events(trace, find_steps(trace).host)
    found = dict(zip(trace.events["name"].cast(pl.String), step, strict=True))
    assert (found["a"], found["b"], found["c"]) == (4, 5, None)
