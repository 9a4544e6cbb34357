"""What is left of steps of JAX on a CPU in which programs run for the first time."""

from __future__ import annotations

import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.first_runs import first_runs, growth_of_arguments
from stepscope.analysis.options import Options
from tests.analysis.findings.programs.host_programs import CALL, host_program_trace, run
from tests.builders.hlo import program

SCORE = """
main:
  table = f32[1000,64] parameter(0)
  tokens = f32[LENGTH,64] parameter(1)
  dot.1 = f32[LENGTH,1000] dot(tokens, table)
"""


def rows(compiler: int, computed: int, *after: str) -> list[str]:
    """A call that compiles its program, and the run of that behind it."""
    return [
        f"main  10  {compiler + 50}  PjitFunction(score)  span",
        f"main  20  {compiler}  backend_compile  span",
        f"main  {compiler + 32}  6  {CALL}  span",
        *run(compiler + 60, computed, f"{compiler + 60}  {computed}  jit_score/dot.1  op"),
        *after,
    ]


def recompiled(step: int, *lines: str) -> Finding:
    trace = host_program_trace(step, *lines, jit_score=program(SCORE.replace("LENGTH", "8")))
    context = RankContext(0, trace, Options())
    return {one.code: one for one in apply_rules(context.case)}["recompilation"]


def test_what_decides_where_hardly_anything_else_is_left_is_in_doubt() -> None:
    """Of 10 ms, 9.4 go into a compiler and 0.5 into first runs: later ones may take as long."""
    found = recompiled(10_000, *rows(9_400, 500))
    assert found.speedup.low < 10_000 / 500
    assert found.speedup.high > 1.5 * found.speedup.mid


def test_to_let_go_of_a_program_goes_with_it() -> None:
    """Python takes 110 µs behind the weak reference that dies with a function, or behind any other call."""
    step = "main  0  9990  $job.py:9 step  python"

    def released(last: str) -> int:
        after = [step, f"main  9870  10  {last}  python"]
        trace = host_program_trace(
            10_000, *rows(9_000, 500, *after), jit_score=program(SCORE.replace("LENGTH", "8"))
        )
        context = RankContext(0, trace, Options())
        found = first_runs(context.case)
        assert found is not None
        return found.released_ns

    assert released("$weakref.py:369 remove") == 110_000
    assert released("$numpy.py:3 asarray") == 0


def test_all_are_padded_to_the_largest_size_or_one_beyond() -> None:
    codes = [program(SCORE.replace("LENGTH", str(length))) for length in (100, 200, 300)]
    assert growth_of_arguments(codes) == pytest.approx((1.5, 2.5))
    assert growth_of_arguments(codes[:1]) == (1.0, 1.0)
    assert growth_of_arguments([codes[0], codes[0]]) == (1.0, 1.0)
