from stepscope.analysis.findings.rules.host.device_sync import RULE
from tests.builders.cases import case_of_text, gemm, steps

# The device is done after 210 µs; the value is there 400 µs later.
_READS = [*gemm(100, 100, 110), "main  150  460  CommonPjRtBuffer::ToLiteral  span  -", *gemm(700, 280, 710)]


def test_what_a_wait_takes_behind_the_device_is_the_hosts_under_jax() -> None:
    case = case_of_text(steps(*_READS), framework="jax")
    late = case.plan.host.filter(case.plan.host["cause"] == "sync")
    assert late["recorded_ns"].unique().to_list() == [400_000]
    assert abs(case.plan.as_recorded().step_ns() - 1_000_000) < 50_000


def test_it_goes_with_the_wait() -> None:
    case = case_of_text(steps(*_READS), framework="jax")
    without = case.plan.without_waits()
    assert int(without.host.filter(without.host["cause"] == "sync")["ns"].sum()) == 0
    [found] = RULE.findings(case)
    assert found.speedup.low > 1.4


def test_calls_of_the_driver_return_at_once() -> None:
    case = case_of_text(steps(*gemm(100, 100, 110), "main  150  460  cudaStreamSynchronize  runtime  -"))
    assert case.plan.host.filter(case.plan.host["cause"] == "sync").is_empty()
