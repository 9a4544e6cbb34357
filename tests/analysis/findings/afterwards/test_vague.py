"""What no promise may exceed, and promises that say nothing."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.afterwards.vague import say_what_comes_first, withdraw_vague
from stepscope.analysis.findings.apply import apply_rules, replay_together
from stepscope.analysis.findings.change import as_change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import least_left
from stepscope.registers.calibration.promises import BEYOND_WORK
from tests.builders.cases import case_of_text, gemm, steps

LOAD = "main  0  {}  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"


def test_no_step_is_promised_to_be_shorter_than_the_devices_work() -> None:
    """Its end is wider than the replay, which would leave the device less time than its kernels take."""
    (found,) = apply_rules(case_of_text(steps(LOAD.format(200), *gemm(200, 785))))
    assert found.code == "input-bound" and found.left_ns_per_step is not None
    left = found.left_ns_per_step
    assert 785_000 / BEYOND_WORK - 2_000 < left.low <= left.mid < left.high


def test_without_some_kernels_the_rest_of_the_step_stays() -> None:
    """Half of a kernel's time goes: no more can go than all of it, though the device then has nothing else to do."""
    python = "main  0  600  train.py(3): batch  python  -"
    wait = "main  612  375  cudaStreamSynchronize  runtime  -"
    case = case_of_text(steps(python, *gemm(600, 370), wait))
    halved = as_change(case.plan.with_device(pl.lit(True), 0.5))
    assert case.work_share(halved.largest) < 0.25
    assert 0.55 < least_left(case, halved) < 0.7
    no_python = as_change(case.plan.with_host(pl.col("cause") == "python"))
    assert least_left(case, no_python) == case.work_share(no_python.largest)


def test_all_together_save_at_worst_what_each_does_at_worst() -> None:
    """That the second fix gains more once the first is made is expected, not certain."""
    case = case_of_text(steps(LOAD.format(300), "main  300  300  aten::sort  op  -", *gemm(600, 385)))
    found = apply_rules(case)
    both = replay_together(case, found)
    assert both is not None and len(found) == 2
    saved = sum(1 - 1 / each.speedup.low for each in found)
    assert max(each.speedup.low for each in found) <= both.low <= 1 / (1 - saved) + 0.001
    assert both.mid > 1 / (1 - saved)
    assert case.saved_of_ns / both.high + 2_000 >= 385_000 / BEYOND_WORK


def _finding(code: str, speedup: Interval, saves: int = 0) -> Finding:
    return Finding(
        code=code, class_="time", title="", detail="Much.", saves_ns_per_step=saves, speedup=speedup
    )


def test_from_nothing_to_nearly_all_is_no_promise() -> None:
    case = case_of_text(steps(*gemm(0, 985)))
    wide, narrow = (_finding("host-offload", Interval(1, 5, high), 9) for high in (30, 10))
    sure = _finding("recompilation", Interval(2, 6, 50), 9)
    limit = _finding("host-python", Interval(1, 1, 50))
    case.earlier += [wide, narrow, sure, limit]
    withdraw_vague(case)
    assert (wide.class_, wide.saves_ns_per_step, wide.speedup) == ("advice", 0, Interval())
    assert "1.00–30" in wide.detail
    assert [(each.class_, each.detail) for each in (narrow, sure, limit)] == [("time", "Much.")] * 3
    assert limit.speedup.high == 50


def test_a_finding_that_saves_nothing_alone_says_what_comes_first() -> None:
    """The loader takes longer than the device, whose kernels run beside it."""
    case = case_of_text(steps(LOAD.format(700), *gemm(700, 600), count=4))
    found = apply_rules(case)
    assert found[0].code == "input-bound"
    kernels = _finding("fp32-matmul", Interval())
    case.earlier.append(kernels)
    case.changes["fp32-matmul"] = as_change(case.plan.with_device(pl.lit(True), 0.5))
    say_what_comes_first(case)
    assert "fix input-bound first" in kernels.detail
    assert kernels.evidence["first"] == "input-bound"
    assert kernels.evidence["together"] > found[0].speedup.mid
    assert "first" not in found[0].evidence
