"""One set of numbers in every profile of the corpora: shares, savings and speed-ups agree, and all renderings open alike."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.errors import StepscopeError
from stepscope.reports.render.html import as_html
from stepscope.reports.render.markdown import as_markdown, text
from stepscope.reports.render.terminal import as_text
from tests.reports.corpus import CORPUS, PROFILES, of, report_once
from tests.sample import SOAKS

SECOND = os.environ.get("STEPSCOPE_CORPUS_2")
FIRST_FILES, SECOND_FILES = (
    sorted(
        str(path)
        for pattern in ("*.json.gz", "*.pt.trace.json", "*.xplane.pb")
        for path in Path(folder or "/nonexistent").rglob(pattern)
        if not path.name.endswith(".trace.json.gz") or path.name.endswith(".pt.trace.json.gz")
    )
    for folder in (CORPUS, SECOND)
)
ROUNDED = 0.002
pytestmark = pytest.mark.corpus


@pytest.mark.parametrize("path", PROFILES)
@pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set")
def test_the_figures_of_a_run_agree_with_each_other(path: str) -> None:
    _agree(of(path))


@pytest.mark.parametrize("path", [*SECOND_FILES, *(FIRST_FILES if SOAKS else ())])
def test_the_figures_of_a_file_agree_with_each_other(path: str) -> None:
    """Those of the first corpus are seen in their runs; each rank by itself in the soak."""
    try:
        _agree(report_once(path))
    except StepscopeError:
        pytest.skip("not read yet")


def _agree(report: stepscope.Report) -> None:
    is_broken = any(problem.code == "no-device-events" for problem in report.problems)
    assert sum(finding.share for finding in report.findings if finding.class_ == "time") <= 1 + ROUNDED
    for finding in report.findings:
        if is_broken:
            assert (finding.speedup, finding.saves_ns_per_step) == (Interval(), 0)
        elif finding.saves_ns_per_step and len(report.profile.ranks) == 1:
            _agrees(report, finding)
        assert 0 <= finding.share <= 1
        assert 1 <= finding.speedup.low <= finding.speedup.mid <= finding.speedup.high <= 100
    if report.breakdown:
        assert sum(row.share for row in report.breakdown) == pytest.approx(1, abs=1e-3)
    _all_open_alike(report)
    if is_broken:
        assert not re.search(r"\d×(?! )", as_text(report, sections=["findings"]))


def _agrees(report: stepscope.Report, finding: Finding) -> None:
    """What is saved and what is left make a step without the profiler, of which the speed-up is said."""
    left, steps = finding.left_ns_per_step, report.steps
    assert left is not None, finding.code
    step = left.mid + finding.saves_ns_per_step
    assert finding.speedup.mid == pytest.approx(step / left.mid, rel=ROUNDED), finding.code
    mean = steps.estimated_ns or steps.basis_ns or 0
    if steps.outliers:  # of recorded slow steps and usual ones, the finding is about one kind
        assert step <= (1 + ROUNDED) * mean, finding.code
    else:
        assert step == pytest.approx(mean, rel=ROUNDED), finding.code


def _all_open_alike(report: stepscope.Report) -> None:
    is_captured = any(problem.code == "graph-capture" for problem in report.problems)
    said = report.sentence if is_captured else report.steps.sentence
    assert said
    assert said in " ".join(as_text(report).split())
    assert text(said) in as_markdown(report)
    assert said in unescape(as_html(report))
    assert said in unescape(report._repr_html_())
