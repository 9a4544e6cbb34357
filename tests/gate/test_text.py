"""What a gate says: limits in the unit they were written in, and what may be chance as that."""

from __future__ import annotations

import pytest

from stepscope.gate.check import NOISY, OK, OVER, Check, Gate
from stepscope.gate.text import cells


def gate(*verdicts: str) -> Gate:
    checks = [
        Check(name="x", limit=1, value=2, unit="ns", verdict=verdict, message="") for verdict in verdicts
    ]
    return Gate(path="p", passed=OVER not in verdicts, checks=checks)


@pytest.mark.parametrize(
    ("verdicts", "says"),
    [
        ((OK, OK), "PASSED: 2 of 2 limits met."),
        ((NOISY,), "PASSED: 1 limit exceeded within noise (inconclusive)."),
        ((NOISY, NOISY, OK), "PASSED: 2 limits exceeded within noise (inconclusive); 1 of 3 met."),
        ((OVER, NOISY), "FAILED: 1 of 2 limits not met. 1 limit exceeded within noise (inconclusive)."),
    ],
)
def test_summary(verdicts: tuple[str, ...], says: str) -> None:
    assert gate(*verdicts).summary == says


def test_sizes_as_they_were_written() -> None:
    check = Check(
        name="peak_memory", limit=24e9, value=22.5e9, unit="bytes", verdict=OK, message="", said="24 GB"
    )
    assert cells(check)[1:3] == ("24 GB", "22.5 GB")
    grown = Check(
        name="baseline.peak_memory", limit=1e9, value=-5e8, unit="bytes", verdict=OK, message="", said="1 GB"
    )
    assert cells(grown)[1:3] == ("+1 GB", "−0.5 GB")
