"""One set of numbers in every profile of the corpora: shares, savings and speed-ups agree, and all renderings open alike."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.findings.finding import Interval
from stepscope.errors import StepscopeError
from stepscope.reports.render.html import as_html
from stepscope.reports.render.markdown import as_markdown, text
from stepscope.reports.render.terminal import as_text

FOLDERS = [
    Path(os.environ[name]) for name in ("STEPSCOPE_CORPUS", "STEPSCOPE_CORPUS_2") if os.environ.get(name)
]
FILES = sorted(
    str(path)
    for folder in FOLDERS
    for pattern in ("*.json.gz", "*.pt.trace.json", "*.xplane.pb")
    for path in folder.rglob(pattern)
    if not path.name.endswith(".trace.json.gz") or path.name.endswith(".pt.trace.json.gz")
)
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="no corpus")]
ROUNDED = 0.002


@pytest.mark.parametrize("path", FILES)
def test_the_figures_agree_with_each_other(path: str) -> None:
    try:
        report = stepscope.report(path, sections=["findings", "breakdown", "steps", "problems"])
    except StepscopeError:
        pytest.skip("not read yet")
    basis = report.steps.basis_ns
    is_broken = any(problem.code == "no-device-events" for problem in report.problems)
    assert sum(finding.share for finding in report.findings if finding.class_ == "time") <= 1 + ROUNDED
    for finding in report.findings:
        if is_broken:
            assert (finding.speedup, finding.saves_ns_per_step) == (Interval(), 0)
        elif finding.saves_ns_per_step and basis and len(report.profile.ranks) == 1:
            saved = finding.saves_ns_per_step / basis
            assert finding.speedup.mid == pytest.approx(1 / (1 - saved), rel=ROUNDED), finding.code
        assert 0 <= finding.share <= 1
        assert 1 <= finding.speedup.low <= finding.speedup.mid <= finding.speedup.high <= 100
    if report.breakdown:
        assert sum(row.share for row in report.breakdown) == pytest.approx(1, abs=1e-3)
    _all_open_alike(report)
    if is_broken:
        assert not re.search(r"\d×(?! )", as_text(report, sections=["findings"]))


def _all_open_alike(report: stepscope.Report) -> None:
    said = report.steps.sentence
    assert said
    assert said in " ".join(as_text(report).split())
    assert text(said) in as_markdown(report)
    assert said in as_html(report)
    assert said in report._repr_html_()
