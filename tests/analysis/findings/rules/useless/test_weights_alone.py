"""Programs that compute from their weights what is the same in every call."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace, runs_in_steps

CODE = """
main:
  table = f32[500,64] parameter(0) op_name=params['table']
  layer = f32[64,64] parameter(1) op_name=params['layer']
  bias = f32[128] parameter(2) op_name=params['bias']
  tokens = s32[16] parameter(3) op_name=tokens
  small = bf16[64,64] convert(layer) op_name=jit(answer)/narrowed/convert
  rows = f32[16,64] gather(table, tokens) op_name=jit(answer)/gather
  made = bf16[16,64] dot(rows, small) contracts=1,0
  {result}
"""
ALONE = "done = bf16[16,64] copy(made)"
UPDATED = "done = f32[64,64] subtract(layer, made)"


def found_in(cast: int = 80, result: str = ALONE, calls: int = 1) -> dict[str, Finding]:
    """Findings of steps that call the program: a cast of weights of so many µs, and 120 µs of other kernels."""
    work = [("small", cast), ("rows", 10), ("made", 100), ("done", 10)]
    lines = runs_in_steps([("jit_answer", work)] * calls)
    trace = program_trace(lines, jit_answer=program(CODE.format(result=result)))
    return {one.code: one for one in apply_rules(case_of(trace))}


def test_a_cast_of_the_weights_in_every_call() -> None:
    found = found_in()
    assert next(iter(found)) == "recomputed-weights"
    first = found["recomputed-weights"]
    assert first.evidence["program"] == "jit_answer"
    assert first.evidence["kernels_per_step"] == 1
    assert "narrowed" in first.detail and "answer" in first.detail
    assert first.share == pytest.approx(80 / 230, abs=0.02)
    assert first.speedup.low < 230 / 150 < first.speedup.high


def test_in_all_calls_of_a_step() -> None:
    assert found_in(calls=3)["recomputed-weights"].evidence["kernels_per_step"] == 3


@pytest.mark.parametrize(
    "given",
    [
        {"cast": 3},  # a small part of the step
        {"result": UPDATED},  # new weights for each call
    ],
    ids=str,
)
def test_silent_where_weights_change_or_the_cast_is_short(given: dict[str, object]) -> None:
    assert "recomputed-weights" not in found_in(**given)  # type: ignore[arg-type]
