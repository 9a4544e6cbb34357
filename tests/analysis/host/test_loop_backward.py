"""The backward pass of a loop belongs to the loop."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.loop_backward import loops_of_derivatives, with_backward
from stepscope.analysis.host.loops import find_loops
from tests.analysis.compute.traces import compute_trace

COUNT = 10
ENGINE = "autograd::engine::evaluate_function:"


def rows(track: str, at: int, name: str, sequence: int | str, kernel: str) -> list[str]:
    """An op that launches a short kernel."""
    return [
        f"{track}  {at}  20  {name}  op  -  [[8,8]]  float  -  {sequence}",
        f"{track}  {at + 2}  4  cudaLaunchKernel  runtime  {kernel}  -  -  -  -",
        f"stream 7  {at + 8}  2  {kernel}  kernel  -  -  -  -  -",
    ]


def test_gradients_of_the_loops_ops_are_in_the_loop() -> None:
    lines = [
        "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence",
        "main  0  2000  ProfilerStep#1  annotation  -  -  -  -  -",
        "main  0  500  cells.py(8): forward  python  -  -  -  -  -",
    ]
    for k in range(COUNT):
        lines += rows("main", 10 + 40 * k, "aten::mm", k + 1, f"f{k}")
        lines += rows("autograd", 1000 + 40 * k, f"{ENGINE} MmBackward0", COUNT - k, f"b{k}")
    lines += rows("main", 700, "aten::sum", 50, "other")
    lines += rows("autograd", 1500, f"{ENGINE} SumBackward0", 50, "other_back")
    lines += rows("autograd", 1600, f"{ENGINE} torch::autograd::AccumulateGrad", 1, "sums")
    trace = compute_trace("\n".join(lines))
    loops = find_loops(trace)
    both = with_backward(trace, loops)
    calls = trace.events.filter(pl.col("kind") == "runtime")["id"]
    launching = [each.loop_of.gather(calls).drop_nulls().n_unique() for each in (loops, both)]
    counted = [len(each.loop_of.gather(calls).drop_nulls()) for each in (loops, both)]
    assert launching == [1, 1]
    assert counted == [COUNT, 2 * COUNT]
    assert both.found.equals(loops.found)


def test_gradients_that_each_turn_adds_up_are_in_the_loop() -> None:
    """One backward pass behind all turns adds each gradient once anyway."""
    for each_turn, count in ((True, 3 * COUNT), (False, 2 * COUNT)):
        lines = [
            "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence",
            "main  0  2000  ProfilerStep#1  annotation  -  -  -  -  -",
            "main  0  1900  fit.py(8): step  python  -  -  -  -  -",
        ]
        for k in range(COUNT):
            at = 10 + 150 * k
            lines += rows("main", at, "aten::mm", k + 1, f"f{k}")
            if each_turn or k == COUNT - 1:
                lines.append(
                    f"main  {at + 30}  110  <built-in method run_backward of Engine>  python  -  -  -  -  -"
                )
            lines += rows("autograd", at + 40, f"{ENGINE} MmBackward0", k + 1, f"b{k}")
            lines += rows("autograd", at + 70, f"{ENGINE} torch::autograd::AccumulateGrad", 99, f"a{k}")
        trace = compute_trace("\n".join(lines))
        whole = with_backward(trace, find_loops(trace))
        calls = trace.events.filter(pl.col("kind") == "runtime")["id"]
        assert len(whole.loop_of.gather(calls).drop_nulls()) == count


def rows_of_jacobian(*, number: int | None = 90, adds: bool = False) -> tuple[int, int]:
    """A network before a loop whose turns each go back through it: calls in the loop with its backward pass, and loops that compute derivatives.

    `number`: of the op of the network whose gradient is computed; none is that of another op in each turn.
    """
    lines = [
        "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence",
        "main  0  2000  ProfilerStep#1  annotation  -  -  -  -  -",
        *rows("main", 5, "aten::mm", number or 90, "network"),
        "main  40  1900  fit.py(8): rows  python  -  -  -  -  -",
    ]
    for k in range(COUNT):
        at = 50 + 150 * k
        lines += rows("main", at, "aten::sum", 100 + k, f"f{k}")
        lines.append(f"main  {at + 30}  110  <built-in method run_backward of Engine>  python  -  -  -  -  -")
        lines += rows("autograd", at + 40, f"{ENGINE} MmBackward0", number or k + 1, f"b{k}")
        if adds:
            lines.append(
                f"autograd  {at + 70}  20  torch::autograd::AccumulateGrad  op  -  [[8,8]]  float  -  -"
            )
    trace = compute_trace("\n".join(lines))
    loops = find_loops(trace)
    calls = trace.events.filter(pl.col("kind") == "runtime")["id"]
    inside = with_backward(trace, loops).loop_of.gather(calls).drop_nulls()
    return len(inside), len(loops_of_derivatives(trace, loops))


def test_layers_that_all_turns_go_back_through_are_in_the_loop() -> None:
    """As for a Jacobian row by row; a turn that goes back through layers of its own needs them for itself."""
    assert rows_of_jacobian() == (2 * COUNT, 1)
    assert rows_of_jacobian(number=None) == (COUNT, 0)
    assert rows_of_jacobian(adds=True) == (2 * COUNT, 0)
