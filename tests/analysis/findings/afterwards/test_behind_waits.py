"""Work of the host that only a wait keeps from running beside the device."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.afterwards.behind_waits import put_behind_causes
from stepscope.analysis.findings.change import as_change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rules.host import launch_bound, optimizer_loop
from tests.builders.cases import case_of_text, findings_of, gemm, steps


def _findings(python: int, device: int) -> list[Finding]:
    """Of steps that prepare a batch for so long, launch its kernel, and read the loss a little after it is done."""
    wait = f"main  {python + 12}  {device + 40}  cudaStreamSynchronize  runtime  -"
    return findings_of(
        steps(f"main  0  {python}  train.py(3): batch  python  -", *gemm(python, device, python + 10), wait)
    )


def test_the_wait_comes_before_the_work_that_it_would_hide() -> None:
    first, second = _findings(520, 400)
    assert (first.code, second.code) == ("device-sync", "host-python")
    assert first.speedup.mid > 1.7
    assert "see device-sync" in second.detail


def test_work_that_no_device_could_hide_comes_first() -> None:
    first, second = _findings(690, 240)
    assert (first.code, second.code) == ("host-python", "device-sync")
    assert second.speedup.mid > 1.2
    assert "see device-sync" not in first.detail


def test_python_that_follows_no_wait_keeps_its_rank() -> None:
    python = "main  0  600  train.py(3): batch  python  -"
    (found,) = findings_of(steps(python, *gemm(600, 380)))
    assert (found.code, found.certainty) == ("host-python", 1.0)


@pytest.mark.parametrize(("left", "is_behind"), [(0.0, True), (1.0, False)])
def test_of_slow_launches_counts_what_a_cause_leaves_of_them(left: float, is_behind: bool) -> None:
    """Twenty ops of 45 µs: none of that remains to be launched faster where a cause takes all of it."""
    rows = [
        row
        for k in range(20)
        for row in (f"main  {48 * k}  45  aten::add  op  -", *gemm(48 * k + 40, 4, begin=48 * k + 46))
    ]
    case = case_of_text(steps(*rows, count=4))
    launches = launch_bound.RULE.findings(case)[0]
    owned = case.all_slices.clear()
    cause = timed(case, optimizer_loop.RULE, owned, as_change(case.plan.with_host(pl.lit(True), left)), "")
    case.earlier = [launches, cause]
    before = launches.certainty
    put_behind_causes(case)
    assert (launches.certainty < 0.5 * before) is is_behind
    assert is_behind or launches.certainty == before
