"""The critical path in the report: of one rank, by kind and name, in shares that add up."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.options import Options
from stepscope.reports.sections.critical_path import joined

SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"


def test_of_one_rank() -> None:
    report = stepscope.report(SAMPLE, sections=["critical_path"], limit=5)
    found = report.critical_path
    assert found.source == "replay"
    assert found.total_ns == sum(row.duration_ns for row in report.steps.rows)
    assert sum(found.kinds.values()) == pytest.approx(1.0, abs=1e-4)
    assert len(found.rows) == 5 < found.rows_total
    assert [row.ns for row in found.rows] == sorted((row.ns for row in found.rows), reverse=True)
    assert all(row.share == pytest.approx(row.ns / found.total_ns, abs=1e-6) for row in found.rows)


def test_of_several_ranks_there_is_none() -> None:
    assert joined([None, None], Options())["critical_path"].source == "none"
