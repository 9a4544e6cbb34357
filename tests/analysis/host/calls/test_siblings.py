"""Modules of one class that a function calls one after the other: layers of a model need one another, those of channels do not."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.host.loop_backward import merged_parameters, with_backward
from stepscope.analysis.host.loops import Loops, find_loops
from stepscope.trace.trace import Trace
from tests.analysis.compute.traces import compute_trace
from tests.builders.jobs.bodies import BODIES, body

COUNT = 10
COLUMNS = "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence"
ENGINE = "autograd::engine::evaluate_function:"
SLICED = "[[64,10,32],[],[]]"
HEAD = {
    "rows": [
        "main  0  3000  ProfilerStep#1  annotation  -  -  -  -  -",
        "main  0  500  net.py(8): forward  python  -  -  -  -  -",
    ]
}


@pytest.fixture(params=BODIES, autouse=True)
def _body(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in all forms: with the loop in a function, in the step itself, and in an annotation."""
    monkeypatch.setitem(HEAD, "rows", body(request.param, *HEAD["rows"]))


def op(track: str, at: int, name: str, shapes: str, sequence: int | str = "-") -> list[str]:
    """An op that launches a short kernel."""
    return [
        f"{track}  {at}  10  {name}  op  -  {shapes}  float  -  {sequence}",
        f"{track}  {at + 2}  4  cudaLaunchKernel  runtime  k{at}  -  -  -  -",
        f"stream 7  {at + 8}  2  k{at}  kernel  -  -  -  -  -",
    ]


def modules(
    shapes: str,
    kind: str = "Linear",
    called: str = "aten::linear",
    cut: str | None = None,
    joined: bool = False,
    others: str | None = None,
) -> tuple[Trace, Loops]:
    """A function that calls ten modules of one class, with what each of them is given; the last may be given something else."""
    lines = [
        COLUMNS,
        *HEAD["rows"],
    ]
    for k in range(COUNT):
        at, given = 10 + 40 * k, others if others and k == COUNT - 1 else shapes
        lines += [f"main  {at}  4  aten::select  op  -  {cut}  float  -  -"] if cut else []
        lines += [f"main  {at + 5}  20  nn.Module: {kind}_{k}  python  -  -  -  -  -"]
        lines += op("main", at + 8, called, given, k + 1)
        lines += op("autograd", 1000 + 40 * k, f"{ENGINE} AddmmBackward0", "[[8,8]]", COUNT - k)
        lines += [
            f"autograd  {1020 + 40 * k}  5  {ENGINE} torch::autograd::AccumulateGrad  op  -  -  -  -  -"
        ]
    lines += op("main", 520, "aten::stack" if joined else "aten::sum", "[[],[]]", COUNT + 1)
    lines += op("autograd", 1500, f"{ENGINE} SumBackward0", "[[8,8]]", COUNT + 1)
    lines += [f"autograd  1520  5  {ENGINE} torch::autograd::AccumulateGrad  op  -  -  -  -  -"]
    trace = compute_trace("\n".join(lines))
    return trace, find_loops(trace)


def test_layers_that_change_the_width_cannot_need_one_another() -> None:
    _, loops = modules("[[64,336],[96,336],[96]]")
    assert loops.found.select("iterations", "siblings").rows() == [(COUNT, True)]


def test_layers_of_a_model_are_no_loop() -> None:
    _, loops = modules("[[64,32],[32,32],[32]]")
    assert loops.found.is_empty()


@pytest.mark.parametrize("shapes", ["[[],[96,336]]", "[[64],[]]", "[[]]", "[[[64]]]", "[["])
def test_shapes_that_no_layer_has_are_no_loop(shapes: str) -> None:
    _, loops = modules(shapes)
    assert loops.found.is_empty()


def test_layers_with_a_slice_of_one_tensor_each_are_a_loop() -> None:
    _, loops = modules("[[64,32],[32,32],[32]]", cut=SLICED)
    assert loops.found["iterations"].to_list() == [COUNT]


def test_a_slice_that_is_no_input_of_the_layer_says_nothing() -> None:
    _, loops = modules("[[64,128,32],[32,32],[32]]", cut=SLICED)
    assert loops.found.is_empty()


def test_tables_of_all_heights_are_a_loop() -> None:
    given = ("[[1000,16],[64],[],[],[]]", "[[77,16],[64],[],[],[]]")
    _, loops = modules(given[0], "Embedding", "aten::embedding", others=given[1])
    assert loops.found["iterations"].to_list() == [COUNT]


def test_tables_of_bags_are_a_loop() -> None:
    given = ("[[1000,16],[192],[64],[],[]]", "[[77,16],[192],[64],[],[]]")
    _, loops = modules(given[0], "EmbeddingBag", "aten::embedding_bag", others=given[1])
    assert loops.found["iterations"].to_list() == [COUNT]


@pytest.mark.parametrize("others", ["[[64,336],[48,336],[48]]", "[[32,336],[96,336],[96]]"])
def test_modules_that_do_different_work_are_no_loop(others: str) -> None:
    _, loops = modules("[[64,336],[96,336],[96]]", others=others)
    assert loops.found.is_empty()


def test_what_joins_their_results_belongs_to_the_loop() -> None:
    for joined in (True, False):
        trace, loops = modules("[[64,336],[96,336],[96]]", joined=joined)
        inside = set(trace.events["name"].cast(pl.String).filter(loops.loop_of.is_not_null()))
        assert ("aten::stack" in inside, "aten::sum" in inside) == (joined, False)


def test_one_module_has_one_parameter() -> None:
    trace, loops = modules("[[64,336],[96,336],[96]]")
    whole = with_backward(trace, loops)
    # Ten gradients become one; that behind the op outside of the loop stays.
    assert merged_parameters(trace, whole) == pytest.approx((COUNT / COUNT + 1) / (COUNT + 1))
    alone, none = modules("[[64,32],[32,32],[32]]")
    assert merged_parameters(alone, with_backward(alone, none)) == 1.0
