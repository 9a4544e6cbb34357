"""The host's time without the profiler: from the best source that a recording has, within bounds."""

from __future__ import annotations

import pytest

from stepscope.analysis.replay.plan import FAST, SLOW, USUAL
from stepscope.analysis.replay.unprofiled_host import dispatch_left, plan
from stepscope.analysis.steps.find import find_steps
from tests.builders.cases import HEAD, gemm, steps
from tests.builders.inline import US, trace_of

# Ten launches in a step of 1000 µs, the device is busy a tenth of it.
ROWS = [row for k in range(10) for row in (f"main  {100 * k}  80  aten::mm  op  -", *gemm(100 * k + 81, 8))]
TEXT = "\n".join([HEAD, *steps(*ROWS)])


def test_without_an_unprofiled_step_the_range_of_such_recordings() -> None:
    trace = trace_of(TEXT, framework="pytorch")
    found = dispatch_left(trace, find_steps(trace), plan(trace, find_steps(trace), 0))
    assert (found.fast, found.usual, found.slow, found.source) == (0.55, 0.70, 0.85, "measured")


def test_stacks_cost_more() -> None:
    trace = trace_of(TEXT + "\nmain  0  1  train.py(1): f  python  -", framework="pytorch")
    assert dispatch_left(trace, find_steps(trace), plan(trace, find_steps(trace), 0)).usual == 0.58


@pytest.mark.parametrize("mean", [500, 700, 900])
def test_the_unprofiled_step_decides_where_the_host_does(mean: int) -> None:
    trace = trace_of(TEXT, framework="pytorch", capture={"unprofiled_step": {"mean_ns": mean * US}})
    made = plan(trace, find_steps(trace), 0)
    assert made.step_ns() == pytest.approx(mean * US, rel=0.02)
    assert made.at(FAST).step_ns() < made.at(USUAL).step_ns() < made.at(SLOW).step_ns()


def test_the_hosts_own_lengths_come_first() -> None:
    known = {"unprofiled_step": {"mean_ns": 900 * US, "host_ns": 600 * US}}
    trace = trace_of(TEXT, framework="pytorch", capture=known)
    found = dispatch_left(trace, find_steps(trace), plan(trace, find_steps(trace), 0))
    assert found.source == "host"
    assert found.usual == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(
    ("loader", "expected"),
    [("_MultiProcessingDataLoaderIter", "host"), ("_SingleProcessDataLoaderIter", "step")],
)
def test_a_wait_for_workers_is_not_the_hosts_own_time(loader: str, expected: str) -> None:
    """The host's own steps end where it is held up; a loader without workers makes its batches in them."""
    known = {"unprofiled_step": {"mean_ns": 900 * US, "host_ns": 300 * US}}
    wait = f"main  0  500  enumerate(DataLoader)#{loader}.__next__  annotation  -"
    trace = trace_of("\n".join([HEAD, *steps(wait, *ROWS[20:])]), framework="pytorch", capture=known)
    found = dispatch_left(trace, find_steps(trace), plan(trace, find_steps(trace), 0))
    assert found.source == expected
    assert found.usual == pytest.approx(0.6 if expected == "host" else 0.8, abs=0.1)


# The main thread waits while a thread of the pool computes, for 760 µs of each step.
ON_HOST = {
    "tensorflow": "main  100  800  EagerLocalExecute: __inference_f_1  span  -",
    "jax": "main  100  800  block_until_ready  runtime  -",
}


@pytest.mark.parametrize(("mean", "expected"), [(900, 900), (1500, 1000)])
@pytest.mark.parametrize("framework", list(ON_HOST))
def test_a_step_contains_what_other_threads_of_the_host_compute(
    framework: str, mean: int, expected: int
) -> None:
    """It is no longer than recorded, however slow the machine was before."""
    rows = steps(ON_HOST[framework], "tf_Compute/1  120  760  Conv2D  op  -")
    known = {"unprofiled_step": {"mean_ns": mean * US}}
    trace = trace_of("\n".join([HEAD, *rows]), framework=framework, capture=known)
    assert plan(trace, find_steps(trace), None).step_ns() == pytest.approx(expected * US, rel=0.02)


def test_without_an_unprofiled_step_only_its_dispatch_is_shorter() -> None:
    rows = steps(ON_HOST["tensorflow"], "tf_Compute/1  120  760  Conv2D  op  -")
    trace = trace_of("\n".join([HEAD, *rows]), framework="tensorflow")
    made = plan(trace, find_steps(trace), None)
    computed = made.host.filter(made.host["cause"] == "host_compute")["ns"].sum()
    assert computed == pytest.approx(3 * 760 * US, rel=0.01)
    assert 760 * US < made.step_ns() < 1000 * US
