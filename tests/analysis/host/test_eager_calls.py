"""TensorFlow's eager calls: what of them is dispatch, what computes, and what compiles a function."""

from __future__ import annotations

from tests.builders.cases import HEAD, step
from tests.builders.inline import check
from tests.builders.jobs.tensorflow_steps import call, function, tracing

FRAME = "/site-packages/tensorflow/python/eager/execute.py(28): quick_execute"


def _check(parts: str, *steps: list[str]) -> None:
    rows = [row for number, lines in enumerate(steps) for row in step(number, 1000 * number, *lines)]
    check("\n".join([HEAD, *rows]), parts, device=None)


def test_an_eager_call_computes_only_while_its_kernel_runs() -> None:
    _check(
        "dispatch=300 host_compute=700 (EagerLocalExecute: Conv2D)",
        call(0, "Conv2D", 200, run=700, after=100),
    )


def test_a_kernel_run_as_short_as_an_empty_one_is_dispatch() -> None:
    rows = [row for at in range(0, 1000, 50) for row in call(at, "Mul", 30, run=20)]
    _check("dispatch=1000 (EagerLocalExecute: Mul)", rows)


def test_an_op_with_an_event_of_its_own_is_what_computes() -> None:
    rows = [*call(0, "Conv2D", 200, run=800), "main  400  500  Conv2D  op  -"]
    _check("dispatch=500 host_compute=500 (Conv2D)", rows)


def test_a_function_is_compiled_in_the_first_call_after_its_tracing() -> None:
    steps = [[tracing(0, 300), *function(300, f"train_{k}", 500, 200, ("MatMul", 150))] for k in (1, 2)]
    _check("compile=1700 host_compute=300 (MatMul)", *steps)


def test_a_function_that_runs_again_was_compiled_before() -> None:
    """In each step something else is traced, such as a function of a dataset."""
    steps = [[tracing(0, 300), *function(300, "train_1", 500, 200, ("MatMul", 150))]] * 2
    _check("compile=600 dispatch=1000 host_compute=400", *steps)


def test_a_call_without_tracing_before_it_compiles_nothing() -> None:
    steps = [function(0, f"train_{k}", 800, 200, ("MatMul", 150)) for k in (1, 2)]
    _check("dispatch=1600 host_compute=400", *steps)


def test_a_python_function_around_a_call_does_not_take_its_time() -> None:
    """Frames that are sampled surround calls of the runtime, in which no Python runs."""
    around = f"main  0  1000  {FRAME}  python  -"
    steps = [
        [around, tracing(0, 300), *function(300, f"train_{k}", 500, 200, ("MatMul", 150))] for k in (1, 2)
    ]
    _check("compile=1700 host_compute=300 (MatMul)", *steps)
    _check("dispatch=300 host_compute=700", [around, *call(0, "Conv2D", 200, run=700, after=100)])


def test_frames_that_are_sampled_inside_a_first_call_wait_for_it() -> None:
    steps = [
        [
            tracing(0, 300),
            *function(300, f"train_{k}", 500, 200, ("MatMul", 150)),
            f"main  310  480  {FRAME}  python  -",
            f"main  801  15  {FRAME}  python  -",
        ]
        for k in (1, 2)
    ]
    _check("compile=1700 host_compute=300 (MatMul)", *steps)


def test_the_call_that_traces_serves_the_tracing() -> None:
    """Without frames, and with one of a library's in it; a user's annotation around both is another matter."""

    def calls(name: str, *frames: str) -> list[list[str]]:
        rows = [f"main  0  1000  {name}  annotation  -", tracing(150, 150)]
        return [[*rows, *function(400, f"train_{k}", 400, 200, ("MatMul", 150)), *frames] for k in (1, 2)]

    _check("compile=1700 host_compute=300", *calls("train"))
    _check("compile=1700 host_compute=300", *calls("train", f"main  300  90  {FRAME}  python  -"))
    _check("compile=1200 host_compute=300 dispatch=500", *calls("epoch"))
