"""Waits that go on long after every device is done promise nothing, since no fix is known to end them."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import LATE_RUNTIME, Finding
from stepscope.analysis.findings.rules.host.device_sync import RULE
from tests.builders.cases import case_of_text

_STEP_US = 6000


def _waiting(late_us: int, device_us: int, framework: str = "jax") -> Finding:
    """Steps of 6 ms: the device works, and the wait goes on for so long after that; what is left of the step, it works again."""
    rows = []
    for at in range(0, 3 * _STEP_US, _STEP_US):
        done = at + 100 + device_us
        rows += [
            f"main  {at}  {_STEP_US}  ProfilerStep#{at // _STEP_US}  annotation  -",
            f"main  {at + 80}  10  cuLaunchKernelEx  runtime  conv",
            f"stream 7  {at + 100}  {device_us}  conv  kernel  -",
            f"main  {at + 95}  {device_us + 5 + late_us}  CommonPjRtBuffer::ToLiteral  span  -",
            f"main  {done + late_us + 20}  10  cuLaunchKernelEx  runtime  last",
            f"stream 7  {done + late_us + 40}  {at + _STEP_US - done - late_us - 60}  last  kernel  -",
        ]
    [found] = RULE.findings(case_of_text(rows, framework=framework))
    return found


def test_a_wait_behind_an_idle_device_is_not_promised_away() -> None:
    found = _waiting(4000, 300)
    assert (found.class_, found.speedup.high, found.saves_ns_per_step) == ("advice", 1.0, 0)
    assert found.evidence["silent_ns_per_step"] == pytest.approx(3_000_000, rel=0.01)
    assert "no device works" in found.detail
    assert found.title == LATE_RUNTIME
    assert found.detail.endswith("So nothing is promised.")


def test_handing_on_a_value_goes_with_the_wait() -> None:
    found = _waiting(900, 300)
    assert found.speedup.low > 1.1
    assert "no device works" not in found.detail


def test_what_is_not_known_to_go_makes_the_promise_wider() -> None:
    """What a wait takes beyond what a runtime needs may stay: at worst it does."""
    surely, doubtful = _waiting(1000, 300), _waiting(1800, 300)
    assert doubtful.class_ == "time"
    assert doubtful.title == RULE.title
    assert doubtful.speedup.high > surely.speedup.high
    assert doubtful.speedup.high / doubtful.speedup.low > surely.speedup.high / surely.speedup.low


def test_waits_of_pytorch_are_its_own() -> None:
    found = _waiting(4000, 300, framework="pytorch")
    assert "no device works" not in found.detail
