"""Activations that are computed twice: what goes surely, and what a compiled program may need anyway."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.kernels.recomputation import RULE
from tests.builders.cases import case_of_text, gemm, steps


def _case(how: str) -> Case:
    """A kernel of 450 µs, and once more; `how` is known that it is the same."""
    waits = "main  40  950  cudaDeviceSynchronize  runtime  -"
    made = case_of_text(steps(*gemm(0, 450, 20), *gemm(20, 450, 475), waits))
    again = made.kernels["event"].gather_every(2, 1)
    account = replace(made.compute, repeated=pl.DataFrame({"event": again, "how": how}))
    return replace(made, compute_of=lambda: account)


@pytest.mark.parametrize(("how", "low"), [("frame", 1.75), ("program", 1.0)])
def test_a_compiled_program_may_gain_nothing(how: str, low: float) -> None:
    (found,) = RULE.findings(_case(how))
    assert found.speedup.mid > 1.3
    assert found.speedup.low == pytest.approx(low, abs=0.15)
