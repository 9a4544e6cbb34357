"""Settings for debugging that were left on: what they add, and what only looks like it."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.host.debug_setting import RULE
from tests.builders.cases import case_of_text, findings_of, gemm, steps

NODE = "autograd::engine::evaluate_function: MmBackward0"


def backward(checks: str = "aten::isnan", between: str = "") -> list[str]:
    """Steps of 1000 µs with a node of 800 µs: the gradient is computed for 200 µs, and checked for 510 µs, which the host waits for."""
    return steps(
        f"main  50  800  {NODE}  op  -",
        *gemm(60, 200, 70),
        *([f"main  299  545  {between}  python  -"] if between else []),
        f"main  300  30  {checks}  op  -",
        "main  305  8  cudaLaunchKernel  runtime  ne",
        "stream 7  320  510  ne  kernel  -",
        "main  340  500  aten::item  op  -",
        "main  345  490  cudaStreamSynchronize  runtime  -",
    )


def test_anomaly_detection_is_named_and_goes_with_its_waits() -> None:
    [found] = RULE.findings(case_of_text(backward()))
    assert found.evidence["setting"] == "torch.autograd.set_detect_anomaly"
    assert "set_detect_anomaly off" in found.fix
    assert found.share > 0.3
    assert found.speedup.mid > 1.3


def test_no_other_rule_claims_its_waits() -> None:
    codes = [each.code for each in findings_of(backward())]
    assert codes[0] == "debug-setting"
    assert "device-sync" not in codes


def forward(within: str = "torch/fx/traceback.py(415): format_stack") -> list[str]:
    """Steps of 1000 µs: an op that makes a node and formats its stack for 360 µs meanwhile, and a backward pass with its check."""
    return steps(
        "main  20  400  aten::mm  op  -",
        f"main  30  360  {within}  python  -",
        "main  395  10  cudaLaunchKernel  runtime  mm",
        "stream 7  410  40  mm  kernel  -",
        f"main  450  400  {NODE}  op  -",
        *gemm(460, 40, 470),
        "main  700  30  aten::isnan  op  -",
        "main  705  8  cudaLaunchKernel  runtime  ne",
        "stream 7  720  10  ne  kernel  -",
    )


def test_ops_lose_the_time_of_the_stacks_that_they_keep() -> None:
    [found] = RULE.findings(case_of_text(forward()))
    assert found.share > 0.35
    assert found.speedup.low > 1.3


def test_other_python_inside_of_ops_stays() -> None:
    """Without stacks in the recording, only ops that are numbered as nodes are known to keep any: this one is not."""
    [found] = RULE.findings(case_of_text(forward("hooks.py(3): check")))
    assert found.share < 0.1
    assert found.speedup.mid < 1.2


def test_launches_are_not_judged_before_the_checks_are_gone() -> None:
    codes = [each.code for each in findings_of(forward())]
    assert codes[0] == "debug-setting"
    assert "launch-bound" not in codes


@pytest.mark.parametrize(("checks", "between"), [("aten::abs", ""), ("aten::isnan", "hooks.py(3): check")])
def test_other_ops_and_hooks_of_the_job_are_none(checks: str, between: str) -> None:
    assert RULE.findings(case_of_text(backward(checks, between))) == []


@pytest.mark.parametrize(
    ("framework", "name", "kind", "setting"),
    [
        ("jax", "$dispatch.py:294 check_special", "python", "jax_debug_nans"),
        ("jax", "$api.py:106 _nan_check_posthook", "python", "jax_debug_nans"),
        ("tensorflow", "CheckNumericsV2", "op", "tf.debugging.enable_check_numerics"),
    ],
)
def test_checks_of_other_frameworks(framework: str, name: str, kind: str, setting: str) -> None:
    rows = steps(*gemm(5, 100, 15), f"main  120  600  {name}  {kind}  -", *gemm(740, 150, 750))
    [found] = RULE.findings(case_of_text(rows, framework=framework))
    assert found.evidence["setting"] == setting
    assert found.share > 0.3


def test_checks_that_a_model_makes_itself_are_none() -> None:
    rows = steps(*gemm(5, 100, 15), "main  120  600  CheckNumerics  op  -", *gemm(740, 150, 750))
    assert RULE.findings(case_of_text(rows, framework="tensorflow")) == []


def test_stacks_that_are_not_recorded_get_advice_without_a_device() -> None:
    """They are inside of ops that compute, too."""
    rows = steps(
        f"main  50  800  {NODE}  op  -",
        "main  60  200  aten::mm  op  -",
        "main  300  400  aten::isnan  op  -",
    )
    [found] = RULE.findings(case_of_text(rows))
    assert (found.class_, found.saves_ns_per_step) == ("advice", 0)


BLOCKING = "CUDA_LAUNCH_BLOCKING=1"


def launches(call: int, kernel: int, begin: int, count: int = 40, others: int = 0) -> list[str]:
    """Steps of 1000 µs that launch a kernel every 24: `call` and `kernel` long, `begin` after the call's start; but for the last ones."""
    rows = []
    for number, at in enumerate(range(0, 24 * count, 24)):
        if number >= count - others:
            call, begin = 4, 6
        rows += [
            f"main  {at}  22  aten::mm  op  -",
            f"main  {at + 2}  {call}  cudaLaunchKernel  runtime  mm",
            f"stream 7  {at + 2 + begin}  {kernel}  mm  kernel  -",
        ]
    return steps(*rows)


def test_launches_that_wait_for_their_kernels_are_a_setting() -> None:
    """The device works for 10 of each 24 µs, and the host for 6, beside the launch."""
    [found] = RULE.findings(case_of_text(launches(18, 10, 5)))
    assert found.evidence["setting"] == BLOCKING
    assert "Unset CUDA_LAUNCH_BLOCKING" in found.fix
    assert 24 / (6 + 8) < found.speedup.mid < 24 / 10
    codes = [each.code for each in findings_of(launches(18, 10, 5))]
    assert codes == ["debug-setting"]


def test_long_kernels_that_launches_wait_for_can_run_beside_the_host() -> None:
    """300 µs of host work and 600 of the device take turns: at best, the host's are hidden."""
    parts = [
        part
        for at in range(0, 960, 240)
        for part in (
            f"main  {at}  230  aten::mm  op  -",
            f"main  {at + 70}  160  cudaLaunchKernel  runtime  mm",
            f"stream 7  {at + 75}  150  mm  kernel  -",
        )
    ]
    [found] = RULE.findings(case_of_text(steps(*parts, count=30)))
    assert 1.2 < found.speedup.mid < 1000 / 600
    assert found.speedup.high < 2


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(launches(8, 10, 10), id="asynchronous"),
        pytest.param(launches(18, 10, 5, count=30), id="few launches"),
        pytest.param(launches(10, 6, -8), id="clock is off"),
        pytest.param(launches(18, 10, 5, others=6), id="not all of them"),
    ],
)
def test_other_launches_are_no_setting(rows: list[str]) -> None:
    assert RULE.findings(case_of_text(rows)) == []


def test_a_setting_that_came_too_late_does_nothing() -> None:
    noted = {"debug_settings": [BLOCKING]}
    assert RULE.findings(case_of_text(launches(8, 10, 10), capture=noted)) == []
    [found] = RULE.findings(case_of_text(launches(18, 10, 5, others=6), capture=noted))
    assert "is set" in found.detail
