"""A single step that loads its kernels says nothing about those that come after it."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of_text, gemm


def _found(load_us: int, steps: int) -> dict[str, Finding]:
    """Steps of `load_us` for the first launch, and 2 ms of small kernels that the host launches too slowly."""
    rows, now = [], 0
    for number in range(steps):
        rows += [
            f"main  {now}  {load_us + 2020}  ProfilerStep#{number}  annotation  -",
            f"main  {now}  {load_us}  cudaLaunchKernel  runtime  first",
            f"stream 7  {now + load_us + 5}  10  first  kernel  -",
        ]
        for at in range(now + load_us + 20, now + load_us + 2000, 100):
            rows += [f"main  {at}  90  aten::add  op  -", *gemm(at + 60, 5, begin=at + 75)]
        now += load_us + 2020
    return {found.code: found for found in apply_rules(case_of_text(rows))}


def test_other_findings_of_a_cold_step_promise_nothing() -> None:
    found = _found(load_us=5000, steps=1)
    assert found["warm-up"].share > 0.6
    assert "launch-bound" not in found
    assert all(each.speedup.high == 1 for each in found.values())


@pytest.mark.parametrize(("load_us", "steps"), [(1500, 1), (5000, 3)])
def test_other_findings_stay_where_loading_is_not_most_of_the_only_step(load_us: int, steps: int) -> None:
    assert "launch-bound" in _found(load_us, steps)
