"""What the profiler may have added by itself is advice."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.profiler_doubt import without_doubt
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rules.host.launch_bound import RULE
from tests.builders.cases import case_of_text, gemm, steps

BUSY = steps(*gemm(0, 700), *gemm(720, 200, 740))
IDLE = steps(*gemm(0, 60), *gemm(400, 60), *gemm(800, 60))


def judged(case: Case, left: float) -> tuple[str, Interval, str]:
    """A finding whose change leaves so much of the host's dispatch."""
    change = case.plan.with_host(pl.lit(True), left)
    found = without_doubt(case, timed(case, RULE, case.slices.head(1), change, "Slow."))
    return found.class_, found.speedup, found.detail


def test_a_gain_that_a_fast_host_does_not_have_is_advice() -> None:
    class_, speedup, detail = judged(case_of_text(BUSY), 0.9)
    assert (class_, speedup) == ("advice", Interval())
    assert detail.startswith("Slow. The profiler may have added all of it")


def test_a_gain_on_any_host_is_promised() -> None:
    class_, speedup, detail = judged(case_of_text(IDLE), 0.1)
    assert class_ == "time"
    assert speedup.mid > 1.3
    assert "profiler" not in detail
