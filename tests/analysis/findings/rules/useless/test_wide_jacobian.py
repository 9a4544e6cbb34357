"""Derivatives that are carried for more vectors than needed, in steps of compiled programs."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.options import Options
from stepscope.trace.schema import conform
from stepscope.trace.trace import Trace
from tests.analysis.findings.programs.host_programs import handed_over, host_program_trace, run
from tests.analysis.xla.derivatives.jacobians import BACKWARDS, FORWARDS, code, reading
from tests.builders.cases import case_of
from tests.builders.programs import program_trace, runs_in_steps

KERNELS = [("h", 100), ("mul", 300), ("jacobian", 500), ("result", 100)]
# As a graph runs them, in another order than the code has them: a library's kernel has no name of its own.
GRAPH = [("mul", 300), ("sm90_gemm", 500), ("slope", 20), ("h", 80), ("result", 100)]
DOT = "jacobian = f32[512,16,3] dot(mul, w1) contracts=2,1"
CALL = "jacobian = f32[512,16,3] custom-call(mul, w1) target=__cublas$lt$matmul"


def on_device(text: str = BACKWARDS) -> dict[str, Finding]:
    trace = program_trace(runs_in_steps([("jit_f", KERNELS)]), jit_f=code(text))
    return {one.code: one for one in apply_rules(case_of(trace))}


def in_graph(text: str, kernels: list[tuple[str, int]]) -> dict[str, Finding]:
    """The same of a program all of whose kernels are in one graph."""
    trace = program_trace(runs_in_steps([("jit_f", kernels)]), jit_f=code(text))
    scopes = trace.tables["ops"].with_columns(scope=pl.lit("jit_f/command_buffer"))
    graph = Trace({**trace.tables, "ops": conform("ops", scopes)}, trace.cold)
    return {one.code: one for one in apply_rules(case_of(graph))}


def test_a_jacobian_of_more_outputs_than_inputs_is_carried_backwards() -> None:
    """3/16 of 800 of about 1020 µs are left."""
    mine = on_device()["wide-jacobian"]
    assert mine.share == pytest.approx(0.78, abs=0.03)
    assert mine.speedup.low < 1020 / (220 + 800 * 3 / 16) < mine.speedup.high
    assert mine.evidence["vectors"] == 16 and mine.evidence["needed"] == 3
    assert "jax.jacfwd" in mine.fix and "one for each input would do: 3" in mine.detail


def test_the_other_way_round() -> None:
    mine = on_device(FORWARDS)["wide-jacobian"]
    assert "jax.jacrev instead" in mine.fix and "one for each output would do: 2" in mine.detail


def test_derivatives_that_nothing_reads() -> None:
    mine = on_device(reading("0:512,2:3,0:3"))["wide-jacobian"]
    assert "reads those of 1." in mine.detail and "jax.jvp" in mine.fix


def test_no_wider_than_needed() -> None:
    assert "wide-jacobian" not in on_device(BACKWARDS.replace("vmap(vmap(transpose(jvp())))", "vmap(jvp())"))


def test_products_of_a_library_in_a_graph() -> None:
    """The one between kernels of derivatives is theirs: 3/16 of 820 of about 1020 µs are left."""
    assert DOT in BACKWARDS
    mine = in_graph(BACKWARDS.replace(DOT, CALL), GRAPH)["wide-jacobian"]
    assert mine.share == pytest.approx(0.8, abs=0.03)
    assert mine.speedup.low < 1020 / (200 + 820 * 3 / 16) < mine.speedup.high < 4


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        # The library computes nothing for the basis.
        (BACKWARDS, GRAPH),
        # Its kernel runs beside one of the function.
        (
            BACKWARDS.replace(DOT, CALL),
            [("mul", 300), ("slope", 20), ("h", 80), ("sm90_gemm", 500), ("result", 100)],
        ),
    ],
    ids=("no product", "elsewhere"),
)
def test_kernels_of_a_library_that_may_be_of_something_else(
    text: str, kernels: list[tuple[str, int]]
) -> None:
    assert in_graph(text, kernels)["wide-jacobian"].speedup.high < 2


def test_on_a_host() -> None:
    """Of 1000 µs the program takes 900, and of what was recorded of it the derivatives take 7/8."""
    ops = ("40  100  jit_f/h  op", "140  300  jit_f/mul  op", "440  400  jit_f/jacobian  op")
    trace = host_program_trace(1000, *handed_over(10, "f"), *run(30, 900, *ops), jit_f=code())
    context = RankContext(0, trace, Options())
    mine = {one.code: one for one in apply_rules(context.case)}["wide-jacobian"]
    assert mine.share == pytest.approx(0.79, abs=0.04)
    assert mine.speedup.low < 1000 / (212 + 788 * 3 / 16) < mine.speedup.high
