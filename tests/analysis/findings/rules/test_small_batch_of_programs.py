"""Products of a compiled program that wait for their weights: the program's kernels are its ops."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace, runs_in_steps

_WIDTH, _LAYERS = 4096, 6


def _model(rows: int) -> bytes:
    lines = [f"  h.0 = bf16[{rows},{_WIDTH}] parameter(0)"]
    for n in range(_LAYERS):
        lines += [
            f"  w.{n} = bf16[{_WIDTH},{_WIDTH}] parameter({n + 1})",
            f"  h.{n + 1} = bf16[{rows},{_WIDTH}] dot(h.{n}, w.{n}) contracts=1,0 op_name=jit(decode)/dot_general",
        ]
    return program("main:\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(("rows", "is_found"), [(1, True), (512, False)])
def test_few_rows_take_as_long_as_many(rows: int, is_found: bool) -> None:
    lines = runs_in_steps([("jit_decode", [(f"h_{n + 1}", 40) for n in range(_LAYERS)])])
    found = {one.code: one for one in apply_rules(case_of(program_trace(lines, jit_decode=_model(rows))))}
    assert ("small-batch" in found) == is_found
    if is_found:
        advice = found["small-batch"]
        assert (advice.class_, advice.evidence["rows"]) == ("advice", rows)
