"""Distributions of PyTorch that check their arguments: what the checks cost, and what only looks like them."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.host.distribution_checks import RULE
from tests.builders.cases import case_of_text, findings_of, gemm, steps

MAKING = "torch/distributions/distribution.py(46): __init__"
SAMPLE = "torch/distributions/distribution.py(280): _validate_sample"
CHECK = "torch/distributions/constraints.py(437): check"


def checking(at: int, length: int, call: str = MAKING, check: str = CHECK) -> list[str]:
    """A call that compares, and waits for the answer: `length` in all."""
    return [
        f"main  {at}  {length}  {call}  python  -",
        f"main  {at + 2}  30  {check}  python  -",
        f"main  {at + 5}  25  aten::gt  op  -",
        f"main  {at + 8}  8  cudaLaunchKernel  runtime  gt",
        f"stream 7  {at + 20}  2  gt  kernel  -",
        f"main  {at + 40}  30  aten::is_nonzero  op  -",
        f"main  {at + 45}  20  cudaStreamSynchronize  runtime  -",
    ]


def sampling(call: str = MAKING, check: str = CHECK, length: int = 400) -> list[str]:
    """Steps of 1000 µs: the device computes for 190 µs before such a call, and for 200 after it."""
    return steps(
        "main  0  1000  ppo.py(31): update  python  -",
        *gemm(10, 190, 20),
        *checking(200, length, call, check),
        *gemm(220 + length, 200),
    )


@pytest.mark.parametrize("call", [MAKING, SAMPLE])
def test_checks_go_with_their_waits(call: str) -> None:
    case = case_of_text(sampling(call))
    [found] = RULE.findings(case)
    assert found.evidence["checks_per_step"] == 1
    assert "set_default_validate_args(False)" in found.fix
    assert [(each.file, each.line, each.function) for each in found.where] == [("ppo.py", 31, "update")]
    left = case.changes[RULE.code].smallest
    names = case.trace.events["name"].cast(str).gather(left.items["event"])
    assert left.items["device_ns"].filter(names == "gt").sum() == 0
    assert found.speedup.mid > 1.1


def test_no_other_rule_claims_their_waits() -> None:
    codes = [each.code for each in findings_of(sampling())]
    assert RULE.code in codes
    assert "device-sync" not in codes


def test_checks_on_a_cpu_take_the_time_of_their_ops() -> None:
    """They are 300 of 1000 µs."""
    rows = steps(
        "main  0  1000  ppo.py(31): update  python  -",
        "main  10  600  aten::mm  op  -",
        f"main  650  300  {SAMPLE}  python  -",
        f"main  655  250  {CHECK}  python  -",
        "main  660  240  aten::eq  op  -",
        "main  920  25  aten::is_nonzero  op  -",
    )
    [found] = RULE.findings(case_of_text(rows))
    assert found.share == pytest.approx(0.3, abs=0.02)
    assert found.speedup.low > 1.2
    assert found.speedup.high > 1 / 0.7


@pytest.mark.parametrize(
    ("call", "check"),
    [
        (MAKING, "torch/distributions/constraints.py(156): is_dependent"),
        (MAKING, "mylib/constraints.py(437): check"),
        ("mylib/distribution.py(46): __init__", CHECK),
        ("torch/distributions/normal.py(58): __init__", CHECK),
    ],
)
def test_other_calls_are_none(call: str, check: str) -> None:
    """With the checks off, the base class only stores the shapes; and what a library checks itself no switch turns off."""
    assert RULE.findings(case_of_text(sampling(call, check))) == []


def test_short_checks_are_none() -> None:
    assert RULE.findings(case_of_text(sampling(length=75))) != []
    assert RULE.findings(case_of_text(steps(*gemm(10, 700, 20), *checking(400, 75), *gemm(750, 200)))) == []


def test_a_short_wait_that_empties_a_long_queue_counts_by_what_follows() -> None:
    """The device is idle for 20 µs while the host waits, and for 270 more until the host has launched what comes next."""
    rows = steps(
        *gemm(10, 380, 20),
        *checking(50, 370)[:3],
        "main  90  325  aten::is_nonzero  op  -",
        "main  95  320  cudaStreamSynchronize  runtime  -",
        *(row for at in range(420, 680, 20) for row in gemm(at, 1, at + 12)),
        *gemm(680, 300),
    )
    [found] = RULE.findings(case_of_text(rows))
    assert sum(each["ns_per_step"] for each in found.evidence["names"]) < 30_000
    assert found.speedup.mid > 1.05


def test_a_graph_is_said_with_the_checks_that_have_to_go_first() -> None:
    """Ten waits in a step, all of them in checks, between launches that the host is too slow for."""
    parts = [row for at in range(0, 1000, 100) for row in (*checking(at, 76), *gemm(at + 80, 2, at + 92))]
    found = {each.code: each for each in findings_of(steps(*parts))}
    assert "launch-bound" not in found
    assert found[RULE.code].evidence["then"] == "launch-bound"
