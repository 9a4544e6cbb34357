"""Loops in Python: what counts as one, and what runs in it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.loops import Loops, find_loops
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of

HEAD = ["track  start  dur  name  kind  launches", "main  0  2000  ProfilerStep#1  annotation  -"]


def launch(at: int, name: str) -> list[str]:
    """An op that launches a short kernel."""
    return [
        f"main  {at}  6  {name}  op  -",
        f"main  {at + 1}  4  cudaLaunchKernel  runtime  k{at}",
        f"stream 7  {at + 8}  2  k{at}  kernel  -",
    ]


def loops_of(*rows: str) -> tuple[Trace, Loops]:
    """The loops of one step with these rows."""
    trace = trace_of("\n".join([*HEAD, *rows]))
    return trace, find_loops(trace)


def names_inside(trace: Trace, loops: Loops) -> set[str]:
    """The names of what runs in a loop."""
    return set(trace.events["name"].cast(pl.String).filter(loops.loop_of.is_not_null()))


def test_ops_that_one_call_repeats_are_a_loop() -> None:
    pieces = [row for k in range(10) for row in launch(10 + 40 * k, "aten::mm")]
    views = [f"main  {30 + 40 * k}  5  aten::select  op  -" for k in range(10)]
    trace, loops = loops_of(
        "main  0  500  moe.py(8): experts  python  -", *pieces, *views, *launch(600, "aten::sum")
    )
    assert loops.found.select("iterations", "launches", "whole").rows() == [(10.0, 10, True)]
    assert names_inside(trace, loops) == {
        "moe.py(8): experts", "aten::mm", "aten::select", "cudaLaunchKernel"
    }  # fmt: skip


def test_code_that_a_compiler_wrote_is_no_loop() -> None:
    """Inductor names files by the hash of their text; its `call` launches one convolution after the other."""
    file = f"/tmp/torchinductor_me/np/c{'npxdb2qrg7' * 5}m.py(943): call"
    pieces = [row for k in range(10) for row in launch(10 + 40 * k, "aten::cudnn_convolution")]
    _, loops = loops_of(f"main  0  500  {file}  python  -", *pieces)
    assert loops.found.is_empty()


def test_a_model_that_is_called_beside_the_loop_is_not_in_it() -> None:
    pieces = [row for k in range(10) for row in launch(510 + 40 * k, "aten::norm")]
    model = ["main  10  400  nn.Module: Net_0  python  -", "main  20  300  net.py(3): forward  python  -"]
    step = "main  0  1000  train.py(9): step  python  -"
    trace, loops = loops_of(step, *model, *launch(30, "aten::conv2d"), *pieces)
    assert len(loops.found) == 1
    inside = names_inside(trace, loops)
    assert "aten::norm" in inside
    assert not {"aten::conv2d", "nn.Module: Net_0", "net.py(3): forward"} & inside


def test_layers_are_no_loop_but_one_module_called_again_is() -> None:
    def calls(same: bool) -> list[str]:
        rows = ["main  0  1000  net.py(5): forward  python  -"]
        for k in range(12):
            rows += [
                f"main  {10 + 40 * k}  20  nn.Module: Linear_{0 if same else k}  python  -",
                *launch(12 + 40 * k, "aten::addmm"),
            ]
        return rows

    assert loops_of(*calls(same=False))[1].found.is_empty()
    assert loops_of(*calls(same=True))[1].found["iterations"].to_list() == [12.0]


def test_functions_must_be_called_more_often_than_a_model_has_layers() -> None:
    def calls(times: int) -> list[str]:
        rows = ["main  0  2000  net.py(5): forward  python  -"]
        for k in range(times):
            rows += [
                f"main  {10 + 40 * k}  20  net.py(30): block  python  -",
                *launch(12 + 40 * k, "aten::addmm"),
            ]
        return rows

    assert loops_of(*calls(12))[1].found.is_empty()
    assert loops_of(*calls(30))[1].found["iterations"].to_list() == [30.0]


def test_without_frames_or_launches_there_is_none() -> None:
    pieces = [row for k in range(10) for row in launch(10 + 40 * k, "aten::mm")]
    trace, loops = loops_of(*pieces)
    assert loops.found.is_empty()
    assert len(loops.loop_of) == len(trace.events)
    assert loops_of("main  0  500  moe.py(8): experts  python  -")[1].found.is_empty()
