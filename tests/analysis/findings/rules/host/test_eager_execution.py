"""A TensorFlow step on the CPU that runs op by op, and one that traces its function anew; steps of JAX that call programs one by one."""

from __future__ import annotations

from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import findings_of, step
from tests.builders.jobs.tensorflow_steps import call, found_in, function, tracing

_OPS = ("Mul", "Sub", "Cast", "Shape", "Sqrt")


def _eager(names: tuple[str, ...], run: int) -> list[str]:
    """Twenty-five calls with a short run, and one with a longer run."""
    short = [row for k in range(25) for row in call(32 * k, names[k % len(names)], 12, run=20)]
    return [*short, *call(800, "Conv2D", 20, run=run)]


def test_dispatch_around_short_kernels_goes_with_a_function() -> None:
    """All but the convolution is dispatch."""
    found = found_in(*[_eager(_OPS, run=170)] * 3)["eager-execution"]
    assert 4 < found.speedup.low < 5.7 < found.speedup.mid < 6.1 < found.speedup.high
    assert found.share > 0.8


def test_ops_that_are_no_products_take_less_in_a_function() -> None:
    rows = [row for k in range(20) for row in call(40 * k, _OPS[k % 5], 20, run=20)]
    product, simple = ([*rows, *call(800, name, 0, run=200)] for name in ("MatMul", "Tanh"))
    slower, faster = (found_in(*[each] * 3)["eager-execution"] for each in (product, simple))
    assert faster.speedup.mid > 1.5 * slower.speedup.mid


def test_the_first_call_of_a_function_goes_with_its_tracing() -> None:
    steps = [[tracing(0, 300), *function(300, f"train_{k}", 600, 100, ("MatMul", 100))] for k in range(3)]
    found = found_in(*steps)
    assert list(found) == ["retracing"]
    assert found["retracing"].share == 0.9
    assert found["retracing"].speedup.mid == 10
    assert found["retracing"].speedup.low > 4


def _call(at: int, program: str, kernels: int, every: int) -> list[str]:
    """A call of a program of JAX that takes the host so long, and its kernels of 1 µs at its end."""
    first = at + every - 2 * kernels - 1
    rows = [
        f"main  {at}  {every - 1}  PjitFunction({program})  span  -",
        f"over gpu  {first}  {2 * kernels - 1}  jit_{program}  module  -",
    ]
    for k in range(kernels):
        rows += [
            f"main  {first + 2 * k - 1}  1  cuLaunchKernelEx  runtime  fusion_{k}",
            f"stream 7  {first + 2 * k}  1  fusion_{k}  kernel  -",
        ]
    return rows


def _found(*bodies: list[str]) -> Finding:
    lines = [row for number, rows in enumerate(bodies) for row in step(number, 1000 * number, *rows)]
    found = {each.code: each for each in findings_of(lines, framework="jax")}
    return found["eager-execution"]


def _loop(turns: int, read: bool = False, body: int = 5) -> list[str]:
    every = 990 // 30
    rows = [row for k in range(turns) for row in _call(every * k, "solve", body, every)]
    if read:
        rows += [f"stream 8  {every * (k + 1) - 1}  1  MemcpyD2H  copy  -" for k in range(turns)]
    return rows


def test_a_compiled_function_keeps_its_kernels() -> None:
    """Ops become part of other kernels; as many kernels of one function are fused already."""
    names = ("add", "multiply", "subtract", "sqrt", "where")
    ops = [row for k in range(30) for row in _call(33 * k, names[k % 5], 1, 33)]
    function = [row for k in range(24) for row in _call(33 * k, names[k % 5], 1, 33)]
    function += _call(33 * 24, "update", 80, 190)
    alone, beside = _found(*[ops] * 3), _found(*[function] * 3)
    assert alone.title == beside.title == "The step runs op by op instead of compiled"
    # The function has 80 kernels, 1 µs apart.
    assert beside.left_ns_per_step is not None and alone.left_ns_per_step is not None
    assert 80_000 < beside.left_ns_per_step.mid < 250_000
    assert alone.left_ns_per_step.mid < 60_000


def _ops_around(function_us: int, python_us: int) -> list[str]:
    """The call of a compiled function of twenty kernels, Python code that calls nothing, and single ops in the rest of the step."""
    names = ("add", "multiply", "subtract", "sqrt", "where")
    rows = _call(0, "update", 20, function_us)
    rows += [f"main  {function_us}  {python_us}  job.py(7): simulate  python  -"] if python_us else []
    begins = range(function_us + python_us, 975, 25)
    return [*rows, *(row for k, at in enumerate(begins) for row in _call(at, names[k % 5], 1, 25))]


def test_what_calls_a_compiled_function_stays() -> None:
    """The call of a step that is one program takes as long as that of the longest of its functions."""
    short, long = (_found(*[_ops_around(us, 0)] * 3) for us in (50, 350))
    assert short.left_ns_per_step is not None and long.left_ns_per_step is not None
    assert long.left_ns_per_step.low > short.left_ns_per_step.high
    assert long.left_ns_per_step.low > 150_000


def test_python_code_that_calls_no_program_may_stay() -> None:
    nothing, much = (_found(*[_ops_around(50, us)] * 3) for us in (0, 350))
    assert nothing.left_ns_per_step is not None and much.left_ns_per_step is not None
    assert much.left_ns_per_step.high > 200_000 > nothing.left_ns_per_step.high


def _ops_between(calls: int, python_us: int = 0) -> list[str]:
    """Calls of one compiled function that take 40 µs each, spread over the single ops of a step, and Python code that calls nothing."""
    names = ("add", "multiply", "subtract", "sqrt", "where")
    rows, at = _call(0, "tendency", 4, 40), 40
    rows += [f"main  {at}  {python_us}  job.py(7): simulate  python  -"] if python_us else []
    at += python_us
    for turn in range(1, calls):
        rows += [row for k in range(2) for row in _call(at + 12 * k, names[(2 * turn + k) % 5], 1, 12)]
        rows += _call(at + 24, "tendency", 4, 40)
        at += 64
    return rows + [row for k, op in enumerate(range(at, 980, 12)) for row in _call(op, names[k % 5], 1, 12)]


def test_a_function_that_a_step_calls_often_is_called_no_more() -> None:
    """Ten calls between single ops are turns of one program, though they are not most of the calls; nine may stay."""
    nine, ten = (_found(*[_ops_between(calls)] * 3) for calls in (9, 10))
    assert nine.title == ten.title == "The step runs op by op instead of compiled"
    assert nine.left_ns_per_step is not None and ten.left_ns_per_step is not None
    assert nine.left_ns_per_step.low > 200_000
    assert ten.left_ns_per_step.high < 150_000


def test_python_code_between_them_may_keep_calls_apart() -> None:
    """At worst, both the calls and the code of 0.35 ms (0.32 without the profiler) stay, at best neither."""
    left = _found(*[_ops_between(10, 350)] * 3).left_ns_per_step
    assert left is not None
    assert left.low < 150_000 and left.high > 300_000


def _long_step(number: int, python_us: int) -> list[str]:
    """20 ms of a compiled function's kernels, Python code that calls nothing, and single ops for 280 ms."""
    names = ("add", "multiply", "subtract", "sqrt", "where")
    rows = [
        "main  0  100  PjitFunction(update)  span  -",
        "over gpu  10  20000  jit_update  module  -",
        *(f"main  {10 + k}  1  cuLaunchKernelEx  runtime  fusion_{k}" for k in range(20)),
        *(f"stream 7  {11 + 1000 * k}  999  fusion_{k}  kernel  -" for k in range(20)),
        f"main  20100  {python_us}  job.py(7): simulate  python  -",
    ]
    for k in range(550):
        rows += _call(20100 + python_us + 500 * k, names[k % 5], 1, 500)
    _, *lines = step(number, 300_000 * number, *rows)
    return [f"main  {300_000 * number}  300000  ProfilerStep#{number}  annotation  -", *lines]


def test_little_python_code_says_nothing_about_what_replaces_the_ops() -> None:
    """Beside 20 ms on the device, 0.4 ms of Python are the lines that every step has, and 2 ms are not."""

    def found(python_us: int) -> Finding:
        lines = [row for number in range(3) for row in _long_step(number, python_us)]
        return {each.code: each for each in findings_of(lines, framework="jax")}["eager-execution"]

    little, much = found(400).speedup, found(2000).speedup
    assert little.low > 0.8 * little.mid
    assert much.low < 0.75 * much.mid


def test_a_loop_that_a_value_ends_costs_more_per_turn() -> None:
    counted, read = _found(*[_loop(30)] * 3), _found(*[_loop(30, read=True)] * 3)
    ended = _found(_loop(28, read=True), _loop(29, read=True), _loop(30, read=True))
    for each in (counted, read, ended):
        assert each.title == "A Python loop calls compiled programs one by one"
    assert "calls solve 30 times." in counted.detail and "while_loop" not in counted.fix
    assert "reads a result" in ended.detail and "while_loop" in ended.fix
    assert ended.speedup.mid < 0.7 * counted.speedup.mid
    # Where the recording leaves it open, the promise covers both.
    assert read.speedup.low < ended.speedup.mid < read.speedup.high
    assert read.speedup.high > 0.9 * counted.speedup.low


def _twice(turns: int) -> list[str]:
    """The calls of a loop as JAX records them: an event by the same name inside of each."""
    return [*_loop(turns), *(f"main  {33 * k + 1}  20  PjitFunction(solve)  span  -" for k in range(turns))]


def test_a_call_that_is_recorded_twice_is_one() -> None:
    assert _found(*[_twice(30)] * 3).evidence["calls_per_step"] == 30


def test_ten_calls_of_one_program_are_a_loop() -> None:
    assert "calls solve 10 times." in _found(*[_twice(10)] * 3).detail
    lines = [row for number in range(3) for row in step(number, 1000 * number, *_twice(9))]
    assert "eager-execution" not in {each.code for each in findings_of(lines, framework="jax")}


def test_calls_without_programs_on_the_device_are_counted_once() -> None:
    """Where no runs of programs are recorded, the sentence goes by the calls."""
    rows = [row for row in _twice(12) if " module " not in row]
    found = _found(*[rows] * 3)
    assert found.evidence["calls_per_step"] == 12
    assert "A step calls solve 12 times." in found.detail


def test_calls_of_tensorflow_are_named_by_their_ops() -> None:
    """An event without a name is around each call; five ops are five different ones, and four are not."""

    def found(names: tuple[str, ...]) -> dict[str, Finding]:
        rows = [row for k in range(20) for row in call(40 * k, names[k % len(names)], 12, run=20)]
        around = [f"main  {40 * k}  39  EagerExecute  span  -" for k in range(20)]
        return found_in(*[[*around, *rows]] * 3)

    assert found(_OPS)["eager-execution"].evidence["calls_per_step"] == 20
    assert "eager-execution" not in found(_OPS[:4])
