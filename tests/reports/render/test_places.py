"""Time that no event spent is shown by where it is, in every rendering; the names in the JSON stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope.assistant.untrusted import quoter_of
from stepscope.reports.model.report import Report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.render.html import as_html
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from tests.builders.documents import span
from tests.builders.files import write_kineto


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A step of a job without a device in which nobody knows what the first and the last 4 ms were."""
    return stepscope.report(write_steps(tmp_path_factory.mktemp("places")))


def write_steps(folder: Path) -> Path:
    marks = [span("user_annotation", f"ProfilerStep#{at}", 10_000 * at, 10_000) for at in range(3)]
    ops = [span("cpu_op", "aten::empty", 10_000 * at + 4_000, 2_000) for at in range(3)]
    return write_kineto(folder / "job.pt.trace.json", *marks, *ops)


def test_the_names_are_those_of_events(found: Report) -> None:
    row = next(row for row in found.breakdown if row.part == "unexplained")
    assert next((each.name, each.place) for each in row.names) == ("aten::empty", "before")
    assert {each.place for each in row.names[1:]} == {"end"}
    assert row.end_ns == row.ns / 2


def test_people_read_where_it_is(found: Report) -> None:
    for text in (as_brief(found), as_text(found), as_html(found)):
        assert "before aten::empty" in text
        assert "at the end" in text
        assert "in aten::empty" not in text
    assert "before `aten::empty`" in as_markdown(found)


def test_the_finding_says_so_too(found: Report) -> None:
    finding = next(each for each in found.findings if each.code == "idle-unexplained")
    assert finding.detail.startswith("For 8.00 ms of 10.0 ms per step (80 %), nothing was recorded.")
    assert {(each["name"], each["place"]) for each in finding.evidence["names"]} == {
        ("aten::empty", "before"),
        ("ProfilerStep#0", "end"),
    }


def test_the_place_is_no_name_of_the_profile(found: Report) -> None:
    assert quoter_of(found).sentence("before that", 100) == "before that"


def test_it_is_a_gap_of_the_critical_path(found: Report) -> None:
    rows = {(row.kind, row.place, row.name) for row in found.critical_path.rows}
    assert {("gap", "before", "aten::empty"), ("gap", None, "unexplained")} <= rows
