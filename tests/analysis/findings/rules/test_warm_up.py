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


def _called(*call_us: int) -> dict[str, Finding]:
    """Steps whose op takes so long before the device has work, for times that differ much."""
    rows, now = [], 0
    for number, (length, work) in enumerate(zip(call_us, (1000, 2500, 500, 3000, 2000), strict=False)):
        rows += [
            f"main  {now}  {length + work}  ProfilerStep#{number}  annotation  -",
            f"main  {now}  {length}  PjitFunction(f)  op  -",
            f"main  {now + length - 5}  5  cudaLaunchKernel  runtime  gemm",
            f"stream 7  {now + length}  {work - 10}  gemm  kernel  -",
            f"main  {now + length}  {work - 15}  cudaStreamSynchronize  runtime  -",
        ]
        now += length + work
    return {found.code: found for found in apply_rules(case_of_text(rows))}


def test_a_first_call_that_takes_many_times_longer_is_warm_up() -> None:
    """Also where the steps differ too much for one of them to be an outlier."""
    found = _called(700, 50, 60, 40, 50)["warm-up"]
    assert found.detail.startswith(
        "In step 0, PjitFunction(f) takes 710 µs, and no more than 70.0 µs in any later step."
    )
    assert (found.class_, found.evidence["steps"], found.saves_ns_per_step) == ("advice", [0], 0)


@pytest.mark.parametrize(
    "calls",
    [
        (500, 50, 60, 40, 50),  # not ten times longer than each
        (50, 700, 60, 40, 50),  # not the first
        (700, 50, 60, 40),  # too few to know the usual one
    ],
)
def test_other_long_calls_are_not(calls: tuple[int, ...]) -> None:
    assert "warm-up" not in _called(*calls)
