"""Waits for the device that a library of distributed training makes, and not the loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of_text, gemm, steps

AWAITABLE = "main  20  450  ## KJTAllToAllTensorsAwaitable wait() ##  annotation  -"
GATHERS = "main  20  450  torch/distributed/tensor/_api.py(7): full_tensor  python  -"
READS = "main  25  440  train.py(42): report  python  -"


def waiting_in(*around: str, workload: str | None = None) -> Finding:
    """Steps whose host waits for 400 µs of work before it launches as much again."""
    copies = ["main  30  420  aten::copy_  op  -", "main  32  410  cudaStreamSynchronize  runtime  -"]
    case = case_of_text(steps(*gemm(0, 430), *around, *copies, *gemm(500, 430)))
    found = {each.code: each for each in apply_rules(replace(case, workload=workload))}
    return found["device-sync"]


@pytest.mark.parametrize("workload", [None, "training", "inference"])
@pytest.mark.parametrize("around", [AWAITABLE, GATHERS])
def test_a_wait_inside_of_an_exchange_is_the_librarys(around: str, workload: str | None) -> None:
    found = waiting_in(around, workload=workload)
    assert "inside of an exchange between ranks" in found.detail
    assert found.fix.startswith("Exchange ahead")
    assert (found.class_, found.speedup.high) == ("advice", 1.0)
    assert "#" not in found.evidence["waits_inside"]


@pytest.mark.parametrize("around", [(), (READS,), (GATHERS, READS)])
def test_what_the_users_own_code_reads_is_not(around: tuple[str, ...]) -> None:
    found = waiting_in(*around)
    assert "between ranks" not in found.detail
    assert ".item()" in found.fix
