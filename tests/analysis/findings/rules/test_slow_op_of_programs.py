"""Decompositions of matrices that nothing changes, in steps of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

CODE = """
main:
  a = f32[64,64] parameter(0)
  b = f32[64,8] parameter(1)
  lu = f32[64,64] custom-call({of}) target=cusolver_getrf_ffi op_name=jit(advance)/jit(solve)/lu
  masked = f32[64,64] fusion(lu) op_name=jit(advance)/jit(solve)/lu
  x = f32[64,8] custom-call(masked, b) target=__cublas$triangularSolve op_name=jit(advance)/jit(solve)/triangular_solve
  done = (f32[64,8]) tuple(x)
"""


def found_in(of: str = "a", lu: int = 600) -> dict[str, Finding]:
    """Three steps of 1000 µs that decompose for so long, and solve for 200 µs."""
    lines: list[str] = []
    for step in range(3):
        at = 1000 * step
        lines.append(f"main  {at}  1000  ProfilerStep#{step}  annotation  -  -")
        lines.append(f"over modules  {at + 20}  {lu + 300}  jit_advance  module  -  -")
        begin = at + 20
        for place, (name, dur) in enumerate((("lu", lu), ("masked", 50), ("x", 200))):
            lines.append(f"main  {at + 2 + 2 * place}  1  cudaLaunchKernel  runtime  {name}  -")
            lines.append(f"stream 7  {begin}  {dur}  {name}  kernel  -  jit_advance")
            begin += dur + 10
        lines.append(f"main  {at + 10}  980  cudaDeviceSynchronize  runtime  -  -")
    trace = program_trace(lines, jit_advance=program(CODE.format(of=of)))
    return {one.code: one for one in apply_rules(case_of(trace))}


def test_only_solving_with_the_factors_remains() -> None:
    found = found_in()["slow-op"]
    assert found.class_ == "time"
    assert "(lu)" in found.detail and "200 µs, remains" in found.detail
    assert "lu_factor" in found.fix
    # Of 880 µs of work, 650 go, with the gaps in between.
    assert found.speedup.low < 880 / 230 < found.speedup.high


@pytest.mark.parametrize("given", [{"of": "b"}, {"lu": 60}])
def test_a_matrix_that_changes_or_takes_little_time(given: dict[str, object]) -> None:
    """The right sides are returned: they are others in each step."""
    found = found_in(**given).get("slow-op")  # type: ignore[arg-type]
    assert found is None or (found.class_ == "advice" and found.speedup.mid == 1.0)
