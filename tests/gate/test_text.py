"""The words of a gate: limits in the unit they were written in, and what is inconclusive as such."""

from __future__ import annotations

import pytest

from stepscope.gate.check import Check, Gate
from stepscope.gate.text import format_cells
from stepscope.gate.wording import NOISY, OK, OVER, UNKNOWN


def gate(*verdicts: str) -> Gate:
    checks = [
        Check(name="x", limit=1, value=2, unit="ns", verdict=verdict, message="") for verdict in verdicts
    ]
    return Gate(path="p", passed=not {OVER, UNKNOWN} & set(verdicts), checks=checks)


@pytest.mark.parametrize(
    ("verdicts", "says"),
    [
        ((OK, OK), "PASSED: 2 of 2 limits met."),
        ((NOISY,), "PASSED: 1 of 1 limit inconclusive."),
        ((NOISY, NOISY, OK), "PASSED: 1 of 3 limits met, 2 inconclusive."),
        ((OVER, NOISY), "FAILED: 1 of 2 limits exceeded, 1 inconclusive."),
        ((OVER, OVER, UNKNOWN, OK), "FAILED: 2 of 4 limits exceeded, 1 unknown."),
        ((UNKNOWN,), "UNKNOWN: 1 of 1 limit unknown."),
    ],
)
def test_summary(verdicts: tuple[str, ...], says: str) -> None:
    assert gate(*verdicts).summary == says


def test_sizes_as_they_were_written() -> None:
    check = Check(
        name="peak_memory", limit=24e9, value=22.5e9, unit="bytes", verdict=OK, message="", said="24 GB"
    )
    assert format_cells(check)[1:3] == ("24 GB", "22.5 GB")
    grown = Check(
        name="baseline.peak_memory", limit=1e9, value=-5e8, unit="bytes", verdict=OK, message="", said="1 GB"
    )
    assert format_cells(grown)[1:3] == ("+1 GB", "−0.5 GB")
