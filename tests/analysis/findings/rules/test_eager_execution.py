"""A TensorFlow step on the CPU that runs op by op, and one that traces its function anew."""

from __future__ import annotations

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
