"""Workers that keep all cores busy: more of them bring nothing."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.findings.apply import apply_rules, replay_together
from stepscope.analysis.findings.batches.busy_cores import BUSY
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of_text, gemm, steps

WORKERS, NO_WORKERS = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"


def case_of(busy: list[Any], loader: str = WORKERS, waited_us: int = 400) -> Case:
    """Steps of 1 ms: they wait so long for a batch and spend 350 µs in code of the user, while so much of the cores is busy."""
    rows = [
        f"main  0  {waited_us}  enumerate(DataLoader)#{loader}.__next__  annotation  -",
        f"main  {waited_us}  350  job.py(12): log  python  -",
        *gemm(waited_us + 350, 630 - waited_us),
    ]
    samples = [{"unix_ns": 1, "rss_bytes": 1}, *({"machine_cpu_percent": each} for each in busy)]
    return case_of_text(steps(*rows), capture={"telemetry": {"samples": samples}, "cores": 16})


def found_in(case: Case) -> dict[str, Finding]:
    return {each.code: each for each in apply_rules(case)}


def test_more_workers_are_no_advice_and_nothing_is_promised() -> None:
    case = case_of([97.5, 98.5])
    found = found_in(case)
    assert found["input-bound"].evidence[BUSY] == pytest.approx(0.98)
    assert "All 16 cores of the machine are busy (98" in found["input-bound"].detail
    assert found["input-bound"].fix.startswith("Do less on the processor for each batch")
    for finding in found.values():
        assert (finding.class_, finding.saves_ns_per_step) == ("advice", 0)
    assert "wait longer for its batches" in found["host-python"].detail
    assert replay_together(case, list(found.values())) is None


@pytest.mark.parametrize(
    ("busy", "loader", "waited_us"),
    [
        ([80, 85], WORKERS, 400),  # cores are left
        ([], WORKERS, 400),  # nobody looked
        ([98], NO_WORKERS, 400),  # the loop makes its batches itself, and workers would do it beside it
        ([98], WORKERS, 100),  # batches come in time
    ],
)
def test_else_promises_stay(busy: list[Any], loader: str, waited_us: int) -> None:
    found = found_in(case_of(busy, loader, waited_us))
    assert found["host-python"].speedup.mid > 1.1
    assert not any(BUSY in each.evidence for each in found.values())


def test_a_sidecar_that_came_from_elsewhere_is_no_trouble() -> None:
    found = found_in(case_of([None, "high", 400, True]))
    assert found["input-bound"].speedup.mid > 1.3
