"""Where steps come from: each source, and what is refused."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.steps.find import Steps, find_steps
from stepscope.analysis.steps.known_annotations import is_warm_up, owner_of
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of, windows_of

HEAD = "track  start  dur  name  kind  launches"


def traced(*lines: str) -> Trace:
    """A trace of these events: track, start, duration, name, kind and what they launch."""
    return trace_of("\n".join([HEAD, *lines]))


def launched(at: int, name: str, start: int, dur: int, call: str = "cudaLaunchKernel") -> list[str]:
    """A call of the host and the kernel that it launches."""
    return [f"main  {at}  2  {call}  runtime  {name}", f"stream 7  {start}  {dur}  {name}  kernel  -"]


def summary(steps: Steps) -> tuple[str, str | None, int]:
    """Source, name and number of the steps."""
    return steps.source, steps.name, steps.windows["step"].n_unique()


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("ProfilerStep#7", "PyTorch"),
        ("execute_32_context_0(sq0sk0)_generation_32(sq32sk32785)", "vLLM"),
        ("execute_context_1(888_788544)_generation_0(0)", "vLLM"),
        ("step[DECODE bs=32]", "SGLang"),
        ("step[EXTEND bs=1 toks=2048]", "SGLang"),
        ("[Executor] _forward_step 12: 0 ctx reqs, 8 gen reqs", "TensorRT-LLM"),
        ("capture_32_DECODE", "graph capture"),
        ("[param|aten::mm|0:0:0|measure|forward]", "param"),
        ("## forward ##", "DLRM"),
        ("[pl][profile]run_training_batch", "Lightning"),
        ("[pl][profile][Strategy]DDPStrategy.training_step", "Lightning"),
        ("train", "trainer"),
        ("train_step", "trainer"),
        ("Iteration 12", "trainer"),
        ("step #3", "trainer"),
        ("run_model_7", None),
        ("epoch 3", None),
        ("execute", None),
        ("[param|clear_cache]", None),
        ("optimizer step", None),
        ("training loop", None),
        ("## backward ##", None),
        ("stepwise", None),
    ],
)
def test_known_annotations(name: str, owner: str | None) -> None:
    assert owner_of(name) == owner


@pytest.mark.parametrize(
    ("name", "warms_up"),
    [("warmup", True), ("[param|mm|0|warmup|forward]", True), ("Warm-up 3", True), ("warm_cache", False)],
)
def test_warm_up_names(name: str, warms_up: bool) -> None:
    assert is_warm_up(name) == warms_up


def test_an_annotation_of_an_engine_may_come_once() -> None:
    steps = find_steps(
        traced("main  0  90  step[DECODE bs=4]  annotation  -", *launched(10, "a", 20, 40), *launched(50, "b", 60, 30))
    )  # fmt: skip
    assert summary(steps) == ("annotation", "step[DECODE bs=4]", 1)
    assert steps.confidence == "high"
    assert windows_of(steps) == [(0, 0, 90)]


def test_a_users_annotation_that_comes_once_is_no_step() -> None:
    steps = find_steps(traced("main  0  90  run_model_7  annotation  -", *launched(10, "a", 20, 40)))
    assert (steps.source, steps.confidence) == ("whole", "low")


def test_engine_steps_with_different_numbers_are_one_kind() -> None:
    lines = []
    for step, tokens in enumerate([8, 9, 10]):
        name = f"execute_context_0(0)_generation_{tokens}({tokens})"
        lines += [f"main  {100 * step}  80  {name}  annotation  -"]
        lines += launched(100 * step + 10, f"k{step}", 100 * step + 20, 50)
    assert summary(find_steps(traced(*lines)))[::2] == ("annotation", 3)


def test_of_nested_annotations_the_innermost_that_holds_the_work_is_the_step() -> None:
    lines = ["main  0  600  train  annotation  -"]
    for step in range(3):
        at = 200 * step
        lines += [
            f"main  {at}  190  train_step {step}  annotation  -",
            f"main  {at}  60  ## forward ##  annotation  -",
        ]
        lines += [*launched(at + 10, f"f{step}", at + 20, 40), *launched(at + 100, f"b{step}", at + 110, 80)]
    assert summary(find_steps(traced(*lines))) == ("annotation", "train_step", 3)


def test_a_training_loop_inside_an_annotation_has_its_own_steps() -> None:
    lines = ["main  0  610  train  annotation  -"]
    for step in range(6):
        at = 100 * step
        lines += [f"main  {at + 1}  20  aten::mm  op  -", *launched(at + 2, f"mm{step}", at + 6, 60)]
        lines += [f"main  {at + 70}  20  Optimizer.step#SGD.step  annotation  -"]
    assert summary(find_steps(traced(*lines)))[::2] == ("inferred", 6)


def test_a_warm_up_pass_is_left_out_and_named() -> None:
    lines = ["main  0  300  [param|mm|0|warmup|forward]  annotation  -", *launched(10, "w", 20, 280)]
    for step in range(3):
        at = 400 + 100 * step
        lines += [
            f"main  {at}  90  [param|mm|0|measure|forward]  annotation  -",
            *launched(at + 5, f"m{step}", at + 10, 70),
        ]
    steps = find_steps(traced(*lines))
    assert (len(steps.host), steps.warm_ups, steps.warm_up) == (3, 1, "[param|mm|0|warmup|forward]")
    assert windows_of(steps)[0][1] >= 300


def test_measured_passes_come_before_longer_ones_that_warm_up() -> None:
    passes = [("warmup", 300 * number, 290) for number in range(3)]
    passes += [("benchmark_iteration", 900 + 100 * number, 90) for number in range(5)]
    lines: list[str] = []
    for name, at, length in passes:
        lines += [f"main  {at}  {length}  {name}  annotation  -", *launched(at + 5, f"k{at}", at + 10, 60)]
    steps = find_steps(traced(*lines))
    assert (steps.name, len(steps.host)) == ("benchmark_iteration", 5)


def test_a_warm_up_alone_is_what_there_is() -> None:
    steps = find_steps(traced("main  0  90  step[WARMUP bs=1]  annotation  -", *launched(10, "a", 20, 60)))
    assert (len(steps.host), steps.warm_ups) == (1, 0)


def layers(calls: int, around: str, head: int = 0) -> list[str]:
    """A forward pass: an embedding, equal layers and a head, which is most of the work if `head` is long."""
    lines = [around, "main  1  4  aten::embedding  op  -", *launched(2, "embedding", 10, 5)]
    for layer in range(calls):
        at = 20 + 20 * layer
        lines += [f"main  {at}  6  aten::mm  op  -", f"main  {at + 8}  6  aten::gelu  op  -"]
        lines += launched(at + 1, f"mm{layer}", at + 5, 15)
    at = 20 + 20 * calls
    lines += [f"main  {at}  6  aten::softmax  op  -", *launched(at + 1, "head", at + 5, max(5, head))]
    return lines


def test_layers_are_no_steps_if_they_leave_work_out() -> None:
    assert find_steps(traced(*layers(8, "main  0  200  run_model_7  annotation  -", 60))).source == "whole"


def test_layers_without_any_sign_of_a_loop_have_to_account_for_nearly_all_work() -> None:
    assert find_steps(traced(*layers(30, "main  0  900  run_model_7  annotation  -"))).source == "whole"


def test_periods_inside_one_module_are_no_steps() -> None:
    lines = ["main  0  900  nn.Module: Encoder_0  python  -"]
    for layer in range(8):
        at = 100 * layer
        lines += [f"main  {at + 1}  20  aten::mm  op  -", *launched(at + 2, f"mm{layer}", at + 6, 40)]
        lines += [f"main  {at + 40}  20  cudaStreamSynchronize  runtime  -"]
    assert find_steps(traced(*lines)).source == "whole"
    lines[0] = "main  0  900  train.py(3): epoch  python  -"
    assert summary(find_steps(traced(*lines))) == ("inferred", None, 8)


def test_periods_inside_one_step_of_an_engine_are_no_steps() -> None:
    lines = layers(8, "main  0  300  execute_model  annotation  -")
    assert summary(find_steps(traced(*lines))) == ("annotation", "execute_model", 1)


def test_kernels_of_one_graph_launch_are_no_steps() -> None:
    lines = ["main  0  9  cudaGraphLaunch  runtime  a"]
    lines += [f"stream 7  {10 + 10 * place}  9  a  kernel  -" for place in range(8)]
    assert find_steps(traced(*lines)).source == "whole"


def test_graph_launches_that_repeat_are_steps() -> None:
    lines = []
    for step in range(6):
        at = 100 * step
        lines += launched(at, f"g{step}", at + 10, 80, "cudaGraphLaunch")
        lines += [f"main  {at + 20}  70  cudaStreamSynchronize  runtime  -"]
    assert summary(find_steps(traced(*lines)))[::2] == ("inferred", 6)


def test_something_that_repeats_beside_the_work_is_no_step() -> None:
    lines = [f"main  {10 * place}  5  aten::copy_  op  -" for place in range(20)]
    lines += ["worker  4  190  aten::mm  op  -", "worker  5  2  cudaLaunchKernel  runtime  gemm"]
    lines += ["stream 7  10  180  gemm  kernel  -"]
    assert find_steps(traced(*lines)).source == "whole"


def test_the_profilers_start_and_stop_are_never_inside_a_step() -> None:
    lines = ["main  0  500  $profiler.py:101 start_trace  python  -"]
    lines += ["main  0  600  step 0  annotation  -", *launched(510, "a", 520, 60)]
    lines += ["main  600  900  step 1  annotation  -", *launched(610, "b", 620, 60)]
    lines += ["main  700  800  $profiler.py:213 stop_trace  python  -"]
    steps = find_steps(traced(*lines))
    assert windows_of(steps) == [(0, 500, 600), (1, 600, 700)]


def test_the_whole_recording_leaves_the_profilers_calls_out() -> None:
    lines = ["main  0  500  $profiler.py:101 start_trace  python  -", *launched(510, "a", 520, 60)]
    assert windows_of(find_steps(traced(*lines))) == [(0, 500, 580)]


def test_programs_of_the_devices() -> None:
    lines = [f"over 0  {100 * step}  80  jit_step({step})  module  -" for step in range(4)]
    lines += [f"stream 7  {100 * step}  80  fusion_{step}  kernel  -" for step in range(4)]
    steps = find_steps(traced(*lines))
    assert summary(steps) == ("program", "jit_step", 4)
    assert windows_of(steps) == [(0, 0, 80), (1, 80, 180), (2, 180, 280), (3, 280, 380)]


def test_programs_that_prepare_are_not_part_of_the_first_step() -> None:
    lines = [f"over 0  {10 * place}  5  jit_init({place})  module  -" for place in range(3)]
    lines += [f"over 0  {100 * step}  80  jit_step({step})  module  -" for step in range(1, 9)]
    lines += [f"stream 7  {100 * step}  80  fusion_{step}  kernel  -" for step in range(1, 9)]
    assert windows_of(find_steps(traced(*lines)))[0] == (0, 100, 180)


@pytest.mark.parametrize(("name", "are_steps"), [("backend_compile_and_load", True), ("make_weights", False)])
def test_kernels_that_a_compiler_tries_out_are_no_work_of_steps(name: str, are_steps: bool) -> None:
    lines = [f"main  0  900  {name}  span  -"]
    for place in range(4):
        lines += launched(100 + 200 * place, f"tried_{place}", 110 + 200 * place, 150)
    for step in range(4):
        at = 1000 + 100 * step
        lines += [
            *launched(at, f"fusion_{step}", at + 10, 80),
            f"over 0  {at + 10}  80  jit_step({step})  module  -",
        ]
    assert (find_steps(traced(*lines)).source == "program") is are_steps


def test_the_loop_of_the_host_shows_what_comes_before_its_programs() -> None:
    lines = []
    for step in range(4):
        at = 100 * step
        lines += [
            f"main  {at}  40  make_batch  annotation  -",
            f"main  {at + 41}  50  PjitFunction(step)  span  -",
        ]
        lines += launched(at + 42, f"fusion_{step}", at + 50, 40)
        lines += [f"over 0  {at + 50}  40  jit_step({step})  module  -"]
    steps = find_steps(traced(*lines))
    assert summary(steps) == ("inferred", None, 4)
    assert windows_of(steps)[1] == (1, 100, 200)


def test_the_whole_recording_can_be_asked_for() -> None:
    trace = traced("main  0  90  ProfilerStep#1  annotation  -", *launched(10, "a", 20, 90))
    assert windows_of(find_steps(trace, whole=True)) == [(0, 0, 110)]


def test_a_step_that_launches_nothing_while_the_device_is_behind_has_no_window() -> None:
    lines = []
    for step in range(3):
        lines += [f"main  {10 * step}  10  ProfilerStep#{step}  annotation  -"]
    lines += [*launched(1, "a", 2, 60), *launched(21, "c", 62, 30)]
    steps = find_steps(traced(*lines))
    assert windows_of(steps) == [(0, 0, 62), (2, 62, 92)]
    assert steps.host["step"].to_list() == [0, 2]


def test_a_marked_step_that_earlier_work_fills_stays_a_step() -> None:
    lines = ["main  0  60  ProfilerStep#1  annotation  -", "stream 7  0  70  early  kernel  -"]
    lines += launched(100, "later", 110, 5)
    steps = find_steps(traced(*lines))
    assert (steps.source, windows_of(steps)) == ("marker", [(1, 0, 60)])


def test_work_that_runs_long_after_its_host_window_is_the_step() -> None:
    steps = find_steps(traced("main  0  20  execute_model  annotation  -", *launched(5, "a", 100, 90)))
    assert windows_of(steps) == [(0, 100, 190)]


def test_a_pause_of_the_device_is_no_backlog() -> None:
    lines = [*launched(0, "early", 500, 5), "main  10  600  execute_model  annotation  -"]
    lines += launched(20, "own", 505, 90)
    assert windows_of(find_steps(traced(*lines))) == [(0, 10, 610)]


def test_without_events_there_is_nothing() -> None:
    steps = find_steps(traced("main  0  0  aten::mm  op  -"))
    assert steps.source == "none"
    assert isinstance(steps.windows, pl.DataFrame)
    assert steps.windows.is_empty()
