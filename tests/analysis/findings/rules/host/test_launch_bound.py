"""Launches that hold the device up, in steps with and without graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.host.launch_bound import (
    RULE,
    captured,
    has_data_dependent_shapes,
)
from stepscope.reports.build import report
from tests.analysis.findings.op_steps import Op, case
from tests.builders.cases import case_of_text, findings_of, gemm, steps

FIXTURES = Path(__file__).parents[4] / "fixtures"


def found_in(path: Path) -> dict[str, Finding]:
    return {found.code: found for found in report(path, sections=["findings"]).findings}


def test_a_step_with_graphs_is_advised_to_bring_the_rest_into_them() -> None:
    found = found_in(FIXTURES / "graphs" / "reduce_overhead.json.gz")["launch-bound"]
    assert "launches 11 of 22 kernels one by one, outside of the graphs" in found.detail
    assert found.evidence["kernels_outside_graphs_per_step"] == 11
    assert "into the graphs that it has already" in found.fix
    assert "mode='reduce-overhead'" not in found.fix


@pytest.mark.parametrize(("count", "codes"), [(4, []), (5, ["launch-bound"])])
def test_a_handful_of_launches_is_not_too_many(count: int, codes: list[str]) -> None:
    """Ops of 160 µs with kernels of 5: what holds up three or four of them is not how many there are."""
    rows = []
    for k in range(count):
        at = (990 // count) * k
        rows += [f"main  {at}  80  aten::add  op  -", *gemm(at + 60, 5, begin=at + 75)]
    case = case_of_text(steps(*rows, count=4))
    assert [found.code for found in RULE.findings(case)] == codes


def _program(name: str, at: int, us: int, kernels: int = 1) -> list[str]:
    """A call of a program of JAX that launches kernels of 5 µs at its end."""
    rows = [f"main  {at}  {us}  PjitFunction({name})  span  -"]
    for k in range(kernels):
        begin = at + us - 6 * kernels + 6 * k
        rows += [
            f"main  {begin}  5  cuLaunchKernelEx  runtime  {name}",
            f"stream 7  {begin + 10}  5  {name}  kernel  -",
        ]
    return rows


@pytest.mark.parametrize(("largest_us", "classes"), [(700, ["advice"]), (60, [])])
def test_one_program_is_one_graph_already(largest_us: int, classes: list[str]) -> None:
    rows = _program("train", 100, largest_us, 10)
    found = RULE.findings(case_of_text(steps(*rows, count=4), framework="jax"))
    assert [each.class_ for each in found] == classes


def test_programs_beside_the_largest_get_advice() -> None:
    """Two arrays are indexed by programs of their own, for 300 µs each: how much of that is left inside of the largest is not known."""
    rows = [
        *_program("dynamic_slice", 0, 300),
        *_program("squeeze", 310, 300),
        *_program("train", 620, 200, 10),
    ]
    [found] = RULE.findings(case_of_text(steps(*rows, count=4), framework="jax"))
    assert (found.class_, found.saves_ns_per_step) == ("advice", 0)
    assert found.evidence["programs_per_step"] == 3
    assert "inside of the function under jax.jit" in found.fix


def test_a_largest_program_that_takes_most_of_the_dispatch_is_left_alone() -> None:
    rows = [*_program("convert_element_type", 0, 60), *_program("train", 65, 925, 10)]
    assert RULE.findings(case_of_text(steps(*rows, count=4), framework="jax")) == []


@pytest.mark.parametrize(("calls", "is_whole"), [(1, True), (2, False)])
def test_a_step_that_is_one_program_of_jax_is_promised_nothing(calls: int, is_whole: bool) -> None:
    """A small model: the host takes 90 % of the step to call its program, which nothing is left to be put into."""
    rows = []
    for call in range(calls):
        at = 900 // calls * call
        rows.append(f"main  {at}  {900 // calls}  PjitFunction(step{call})  span  -")
        rows += [row for k in range(20 // calls) for row in gemm(at + 20 * k, 5, begin=at + 20 * k + 5)]
    (found,) = (
        each for each in findings_of(steps(*rows, count=4), framework="jax") if each.code == "launch-bound"
    )
    assert (found.class_, found.speedup.mid) == ("advice", 1.0)
    assert ("several steps at once" in found.fix) is is_whole


def test_products_that_gain_nothing_show_no_figures_of_it() -> None:
    found = found_in(FIXTURES / "kineto" / "streams.pt.trace.json.gz")
    assert "launch-bound" not in found
    assert "tensor cores" in found["fp32-matmul"].detail
    assert not any("1.00×" in each.detail for each in found.values())


@pytest.mark.parametrize(
    ("name", "shapes", "depends"),
    [
        ("aten::repeat_interleave", "[[2,2,512,64],[],[],[]]", False),  # keys.repeat_interleave(4, dim=1)
        ("aten::repeat_interleave", "[[2,2,512,64],[2],[],[]]", True),
        ("aten::repeat_interleave", "[[2],[]]", True),
        ("aten::nonzero", "[[512]]", True),
        ("aten::mul", "[[512],[512]]", False),
    ],
)
def test_only_what_a_tensor_says_how_often_to_repeat_depends_on_data(
    name: str, shapes: str, depends: bool
) -> None:
    made = case([Op(name, shapes, "void at::native::some_kernel", 5)])
    assert has_data_dependent_shapes(made) is depends


@pytest.mark.parametrize(("waits", "class_"), [(10, "advice"), (9, "time")])
def test_a_step_with_many_waits_fits_into_no_graph(waits: int, class_: str) -> None:
    """Waits so short that they are no finding of their own, between the launches."""
    rows = []
    for k in range(12):
        at = 80 * k
        rows += [f"main  {at}  60  aten::add  op  -", *gemm(at + 46, 4, begin=at + 58)]
        if k < waits:
            rows.append(f"main  {at + 60}  4  cudaStreamSynchronize  runtime  -")
    [found] = RULE.findings(case_of_text(steps(*rows, count=4)))
    assert found.class_ == class_
    assert ("which no graph can hold" in found.detail) is (class_ == "advice")


def _turns(*kernels: int) -> list[str]:
    """Turns of a loop that launch so many kernels of 2 µs, 10 µs each, and then read a flag."""
    rows, at = [], 0
    for count in kernels:
        for _ in range(count):
            rows += [f"main  {at}  9  aten::add  op  -", *gemm(at + 4, 2, begin=at + 13)]
            at += 10
        rows.append(f"main  {at}  5  cudaStreamSynchronize  runtime  -")
        at += 6
    return rows


@pytest.mark.parametrize(
    ("kernels", "class_"),
    [
        ([60] * 10, "time"),
        ([60, 1] * 10, "time"),  # two values are read in each turn
        ([60, 62, 58, 60, 61, 60, 60, 64, 60, 60], "time"),
        ([20] * 10, "advice"),
        ([60, 90, 52, 130, 75, 60, 110, 55, 98, 70], "advice"),
        ([60] * 4 + [1] * 12, "advice"),
    ],
    ids=["alike", "two reads", "nearly alike", "short", "different", "few"],
)
def test_turns_of_a_loop_that_are_alike_are_a_graph_each(kernels: list[int], class_: str) -> None:
    rows = _turns(*kernels)
    made = case_of_text(steps(*rows, count=4, us=10 * sum(kernels) + 6 * len(kernels) + 10))
    [found] = RULE.findings(made)
    assert found.class_ == class_
    if class_ == "time":
        assert found.evidence["kernels_per_turn"] == 60
        assert "launched once for each turn" in found.detail
        assert "as one graph" in found.fix
        assert 1.5 < found.speedup.low < found.speedup.high < 6


def test_a_graph_for_each_turn_is_launched_each_time() -> None:
    """With ten turns in a step of 6.1 ms, the launches of their graphs take 0.2 ms."""
    made = case_of_text(steps(*_turns(*[60] * 10), count=4, us=6070))
    assert int(captured(made).largest.items["added_ns"].sum()) == 4 * 10 * 20_000


@pytest.mark.parametrize(
    ("call", "advice"), [("$compilation.py:355 __call__", True), ("$train.py:9 fit", False)]
)
def test_one_program_that_a_library_wraps_is_slow_to_call(call: str, advice: bool) -> None:
    """Short functions of the library are dispatch, as all that a framework does in a step."""
    rows = [f"main  5  940  {call}  python  -"]
    for at in range(10, 690, 40):
        rows.append(f"main  {at}  38  $extract.py:262 to_tree  python  -")
    rows.append("main  700  150  PjitFunction(step)  span  -")
    for at in range(705, 845, 10):
        rows += [f"main  {at}  5  cuLaunchKernel  runtime  gemm", f"stream 7  {at + 10}  8  gemm  kernel  -"]
    [found] = RULE.findings(case_of_text(steps(*rows, count=4), framework="jax"))
    assert found.class_ == "advice"
    assert ("nnx.cached_partial" in found.fix) == advice
