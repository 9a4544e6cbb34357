"""Passes of a compiled model that one pass over all of their inputs would replace."""

from __future__ import annotations

from functools import cache

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

LAYERS, STEP = 4, 880
TAKES = {  # what the program after the passes is given
    "both results and the input": "  a = {x} parameter(0)\n  b = {x} parameter(1)\n  c = {x} parameter(2)\n",
    "one result": "  a = {x} parameter(0)\n  b = f32[] parameter(1)\n",
}


def shapes(rows: int, width: int) -> tuple[str, str]:
    return f"f32[{rows},{width}]", f"f32[{width},{width}]"


def passes(count: int, rows: int, width: int, copies: bool = False) -> str:
    """A program that sends its inputs through the same four layers, whose weights it may copy before."""
    x, w = shapes(rows, width)
    lines = [f"  {'given' if copies else 'w'}.{layer} = {w} parameter({layer})" for layer in range(LAYERS)]
    if copies:
        lines += [f"  w.{layer} = {w} copy(given.{layer})" for layer in range(LAYERS)]
    for number in range(count):
        lines.append(f"  h.{number}.0 = {x} parameter({LAYERS + number})")
        lines += [
            f"  h.{number}.{layer + 1} = {x} dot(h.{number}.{layer}, w.{layer}) contracts=1,0"
            for layer in range(LAYERS)
        ]
    results = ", ".join(f"h.{number}.{LAYERS}" for number in range(count))
    if count > 1:
        lines.append(f"  root = ({', '.join([x] * count)}) tuple({results})")
    return "main:\n" + "\n".join(lines) + "\n"


def kernels(step: int, first: int, program_name: str, names: list[str], length: int) -> list[str]:
    """Kernels of one run, which the host launches long before."""
    launched = STEP * step + 2 + (first - STEP * step) // 50
    return [
        f"over modules  {first}  {len(names) * (length + 1)}  {program_name}  module  -  -",
        *(
            line
            for place, name in enumerate(names)
            for line in (
                f"main  {launched + 2 * place}  1  cudaLaunchKernel  runtime  {name}  -",
                f"stream 7  {first + place * (length + 1)}  {length}  {name}  kernel  -  {program_name}",
            )
        ),
    ]


@cache
def of_runs(
    takes: str = "both results and the input",
    rows: int = 8,
    width: int = 2048,
    length: int = 100,
    runs: int = 2,
    copies: bool = False,
) -> dict[str, Finding]:
    """Of steps of 880 µs in which a model runs in a row, and a small program follows."""
    x, _ = shapes(rows, width)
    lines = []
    names = [f"w_{layer}" for layer in range(LAYERS) if copies]
    names += [f"h_0_{layer + 1}" for layer in range(LAYERS)]
    for step in range(3):
        at = STEP * step
        lines.append(f"main  {at}  {STEP}  ProfilerStep#{step}  annotation  -  -")
        begin = at + 20
        for _ in range(runs):
            lines += kernels(step, begin, "jit_net", names, length)
            begin += len(names) * (length + 1)
        lines += kernels(step, begin, "jit_update", ["d"], 10)
        lines.append(f"main  {at + 50}  {STEP - 55}  cudaDeviceSynchronize  runtime  -  -")
    update = f"main:\n{TAKES[takes].format(x=x)}  d = {x} tanh(a)\n"
    trace = program_trace(lines, jit_net=program(passes(1, rows, width, copies)), jit_update=program(update))
    return {one.code: one for one in apply_rules(case_of(trace))}


def test_a_program_that_runs_twice_for_a_third_that_takes_both() -> None:
    found = of_runs()["unbatched-loop"]
    assert found.title.startswith("The model runs once for each input")
    assert found.evidence["passes"] == 2
    assert "jit_net" in found.detail and "jit_update" in found.detail
    assert found.share == pytest.approx(LAYERS * 101 / STEP, abs=0.03)
    assert 1.1 < found.speedup.low < 1.5 < found.speedup.mid < 1.8 < found.speedup.high < 2.3
    assert found.certainty < 1


@cache
def of_uses(count: int, more: str = "") -> dict[str, Finding]:
    """Of steps of 880 µs whose only program sends two inputs through its layers, or as many."""
    names = [f"h_{number}_{layer + 1}" for number in range(count) for layer in range(LAYERS)]
    lines = []
    for step in range(3):
        at = STEP * step
        lines.append(f"main  {at}  {STEP}  ProfilerStep#{step}  annotation  -  -")
        lines += kernels(step, at + 20, "jit_net", names, 800 // len(names))
        lines.append(f"main  {at + 50}  {STEP - 55}  cudaDeviceSynchronize  runtime  -  -")
    trace = program_trace(lines, jit_net=program(passes(count, 8, 2048) + more))
    return {one.code: one for one in apply_rules(case_of(trace))}


def test_a_program_that_uses_its_weights_several_times() -> None:
    found = of_uses(4)["unbatched-loop"]
    assert found.evidence["passes"] == 4
    assert found.share == pytest.approx(3 / 4 * 816 / STEP, abs=0.05)
    assert 1.3 < found.speedup.low < found.speedup.mid < found.speedup.high < 5
    assert found.speedup.high > of_uses(2)["unbatched-loop"].speedup.high
    assert "unbatched-loop" not in of_uses(1)


def test_programs_that_compute_gradients_are_left_alone() -> None:
    """A forward pass that is computed again uses its weights twice as well."""
    assert "unbatched-loop" not in of_uses(2, "  transpose(jvp = f32[] constant(0)\n")


def test_runs_of_which_each_may_need_the_one_before() -> None:
    """A sampler: the next program takes the last result alone."""
    assert "unbatched-loop" not in of_runs(takes="one result")


def test_a_program_that_runs_once_needs_no_batch() -> None:
    assert "unbatched-loop" not in of_runs(runs=1)


def test_a_copy_of_weights_is_needed_once() -> None:
    """Copies of 151 MB take as long as the memory needs for them, in one pass as long as in each of two."""
    found = of_runs(width=6144, length=49, copies=True)["unbatched-loop"]
    assert 1.3 < found.speedup.low < found.speedup.mid < found.speedup.high < 2.3


def test_a_batch_that_fills_the_device() -> None:
    """4096 rows take 34 GFLOP a layer, for which an H200 needs most of 100 µs in TF32."""
    assert "unbatched-loop" in of_runs(rows=64)
    assert "unbatched-loop" not in of_runs(rows=4096)
