"""Steps from repetition alone."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.steps.find import find_steps
from stepscope.analysis.steps.repetition import repetition
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of, windows_of


def loop(calls: str, times: int, before: str = "", after: str = "", every: int = 100) -> Trace:
    """A loop that makes these calls: `start name` each, on the main thread, `times` times, `every` µs."""
    lines = ["track  start  dur  name  kind"]
    for round_ in range(times):
        lines += [_line(call, every * round_) for call in calls.strip().splitlines()]
    lines += [_line(call, -every) for call in before.strip().splitlines()]
    lines += [_line(call, every * times) for call in after.strip().splitlines()]
    return trace_of("\n".join(lines))


def _line(call: str, offset: int) -> str:
    start, duration, name = call.split(maxsplit=2)
    kind = "annotation" if name.startswith(("Optimizer", "enumerate", "collect", "train")) else "op"
    kind = "python" if ".py(" in name else kind
    return f"main  {int(start) + offset}  {duration}  {name}  {kind}"


TRAINING = """
     0 30 enumerate(DataLoader)#_Single.__next__
    35 10 aten::conv2d
    46 10 aten::relu
    58 10 aten::conv2d
    70 10 aten::relu
    82  8 Optimizer.step#SGD.step
    """


def test_a_training_loop() -> None:
    steps = find_steps(loop(TRAINING, 4))
    assert steps.source == "inferred"
    assert windows_of(steps) == [(0, 0, 100), (1, 100, 200), (2, 200, 300), (3, 300, 400)]
    assert not steps.windows["partial"].any()


def test_layers_that_repeat_inside_a_step_are_not_steps() -> None:
    layers = "\n".join(f"{5 + 5 * place} 4 {name}" for place in range(6) for name in ["aten::mm"])
    steps = find_steps(loop(f"0 4 aten::embedding\n{layers}\n40 9 aten::softmax", 5))
    assert [step for step, *_ in windows_of(steps)] == [0, 1, 2, 3, 4]


def test_an_evaluation_now_and_then_does_not_hide_the_steps() -> None:
    evaluation = "\n".join(f"{start} 4 aten::argmax" for start in range(0, 40, 5))
    trace = loop(TRAINING, 4, after=evaluation)
    assert len(find_steps(trace).host) == 4


def test_two_networks_in_turn_make_one_step() -> None:
    calls = """
         0 10 aten::randn
        11 10 aten::real
        22 10 aten::fake
        33  5 Optimizer.step#Adam.step
        40 10 aten::generate
        51 10 aten::score
        62  5 Optimizer.step#Adam.step
        """
    assert len(find_steps(loop(calls, 5)).host) == 5


def test_phases_with_names_of_their_own_are_one_step() -> None:
    steps = find_steps(loop("5 40 collect\n50 40 train", 6))
    assert (steps.source, len(steps.host)) == ("inferred", 6)
    assert windows_of(steps)[:2] == [(0, -10, 90), (1, 90, 190)]  # as far before `collect` as in the others


def test_pieces_at_the_ends_of_a_recording_are_no_steps() -> None:
    trace = loop(
        TRAINING,
        4,
        before="82  8 Optimizer.step#SGD.step",
        after=" 0 30 enumerate(DataLoader)#_Single.__next__",
    )
    steps = find_steps(trace)
    assert (steps.windows["start_ns"] // 1_000).to_list() == [0, 100, 200, 300]
    assert steps.pieces == 2


def test_the_frame_of_the_loop_is_not_a_step() -> None:
    frame = "track  start  dur  name  kind\nmain  -10  500  main.py(1): <module>  python"
    calls = [f"main  {100 * step}  80  main.py(9): train  python" for step in range(4)]
    steps = find_steps(trace_of("\n".join([frame, *calls])))
    assert windows_of(steps) == [(0, -20, 80), (1, 80, 180), (2, 180, 280), (3, 280, 380)]


def test_unrecorded_time_at_the_end_of_a_step_when_the_recording_ends_with_it() -> None:
    lines = ["track  start  dur  name  kind", "over 0  -200  600  PyTorch Profiler (0)  span"]
    for step in range(4):
        lines += [f"main  {100 * step}  20  aten::mm  op", f"main  {100 * step + 25}  20  aten::add  op"]
    steps = find_steps(trace_of("\n".join(lines)))
    assert windows_of(steps) == [(0, 0, 100), (1, 100, 200), (2, 200, 300), (3, 300, 400)]


def test_a_device_alone() -> None:
    lines = ["track  start  dur  name  kind"]
    for step in range(4):
        lines += [f"stream 7  {100 * step + 20 * place}  15  kernel {place}x  kernel" for place in range(4)]
    steps = find_steps(trace_of("\n".join(lines)))
    assert (steps.source, len(steps.host)) == ("inferred", 4)


@pytest.mark.parametrize("calls", ["0 10 aten::mm\n20 10 aten::add\n40 10 aten::sub", "0 100 aten::mm"])
def test_what_does_not_repeat_has_no_steps(calls: str) -> None:
    assert find_steps(loop(calls, 1)).source == "whole"


@pytest.mark.parametrize(
    ("tokens", "count"),
    [
        ("abcabcabc", 3),
        ("cabcabcab", 3),
        ("eLMLMLMhoeLMLMLMho", 2),
        ("abcd" * 20 + "xyz" + "abcd" * 20, 40),
        ("aaaa", 4),
        ("abcdefg", None),
        ("aab", None),
    ],
)
def test_repetition(tokens: str, count: int | None) -> None:
    found = repetition(pl.Series(list(tokens)))
    assert (None if found is None else found.count) == count


def test_known_marks_are_thinned_until_most_periods_are_alike() -> None:
    tokens = pl.Series(list("zdDozgGo" * 5))
    found = repetition(tokens, [tokens == "o"])
    assert found is not None
    assert (found.count, found.alike) == (5, 1.0)
