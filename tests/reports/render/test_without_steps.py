"""A recording without steps is one window: nothing of it is per step."""

from __future__ import annotations

import pytest

import stepscope
from stepscope.reports.model.report import Report
from stepscope.reports.render.html import as_html
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from tests.builders.documents import span
from tests.builders.files import write_kineto


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """An op, two seconds in collectives of the host, and an op."""
    path = tmp_path_factory.mktemp("whole") / "job.pt.trace.json"
    ops = [span("cpu_op", name, at, 2_000, tid=1) for name, at in (("aten::mm", 0), ("aten::add", 2_010_000))]
    waits = span("user_annotation", "gloo:all_reduce", 5_000, 2_000_000, tid=2)
    return stepscope.report(write_kineto(path, *ops, waits))


def test_the_account_and_its_findings_are_of_the_recording(found: Report) -> None:
    assert found.steps.source == "whole"
    assert found.findings
    assert "of 2.01 s (9" in found.findings[0].detail
    for text in (as_text(found), as_markdown(found), as_html(found)):
        assert "s per step" not in text
        assert "of step time" not in text
        assert "s a step" not in text
        assert "A step of" not in text
