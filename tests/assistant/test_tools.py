"""The tools on a real profile: right answers, within their tokens."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.host.place import Place
from stepscope.assistant.tokens import count_tokens
from stepscope.assistant.tools import Tools
from stepscope.errors import QueryRefused, StepscopeError
from tests.builders.reports import report
from tests.cli.run import FIXTURES

NAME = "streams.pt.trace.json.gz"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools([str(FIXTURES / "kineto")])


def test_the_profiles_have_paths_that_the_others_take(tools: Tools) -> None:
    text = tools.profiles()
    assert count_tokens(text) <= 500
    path = re.search(r"«([^«»]*streams[^«»]*)»", text)
    assert path is not None
    assert "verdict" in tools.report(path[1])


def test_the_report_leads_to_handles_that_are_answered(tools: Tools) -> None:
    text = tools.report(NAME)
    assert count_tokens(text) <= 1_500
    handles = re.findall(r"(?:finding|part|op|kernel|step|problem):[^\s»]+", text)
    assert len(handles) > 5
    for wanted in handles:
        if wanted != "finding:1":
            assert count_tokens(tools.about(NAME, wanted)) <= 500


def test_events_are_those_of_the_handle(tools: Tools) -> None:
    text = tools.report(NAME)
    found = re.search(r"kernel:[^\s»]+", text)
    assert found is not None
    answer = tools.events(NAME, found[0])
    assert count_tokens(answer) <= 500
    ids = [int(each) for each in re.findall(r"event:(\d+)", answer)]
    profile = stepscope.load(FIXTURES / "kineto" / NAME)
    names = set(profile.events.filter(pl.col("id").is_in(ids))["name"])
    assert len(names) == 1
    assert f"event:{ids[0]}" in tools.events(NAME, f"event:{ids[0]}")


def test_sql_answers_and_counts_what_is_left(tools: Tools) -> None:
    expected = len(stepscope.load(FIXTURES / "kineto" / NAME).events)
    assert str(expected) in tools.query(NAME, "SELECT count(*) AS n FROM events")
    many = tools.query(NAME, "SELECT id FROM events")
    assert count_tokens(many) <= 500
    left = re.search(r"… (\d+) more", many)
    assert left is not None
    assert int(left[1]) == expected - len(re.findall(r"^\d+$", many, re.MULTILINE))
    assert tools.query(NAME, "finding:1") == tools.events(NAME, "finding:1")
    assert tools.query(NAME, "SELECT name FROM events WHERE false").endswith("no rows\n")
    with pytest.raises(QueryRefused):
        tools.query(NAME, "COPY events TO '/tmp/x.csv'")


def test_a_diff_has_its_verdict(tools: Tools) -> None:
    text = tools.diff(NAME, NAME)
    assert count_tokens(text) <= 500
    assert "verdict\n" in text


def test_the_doctor_looks_at_profiles(tools: Tools) -> None:
    text = tools.doctor(NAME)
    assert count_tokens(text) <= 500
    assert "checks passed" in text


@pytest.mark.parametrize("path", ["/etc/passwd", "../../conftest.py", "nothing.json"])
def test_other_paths_are_refused(tools: Tools, path: str) -> None:
    for answer in (tools.report, tools.doctor, tools.findings):
        with pytest.raises(StepscopeError, match=r"outside the folders|No such file"):
            answer(path)


def test_source_is_read_below_the_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text("import time\n\ndef slow():\n    time.sleep(1)\n")
    found = report()
    monkeypatch.setattr(Tools, "_report", lambda self, path: found)
    tools = Tools([str(tmp_path)])
    with pytest.raises(StepscopeError, match="no stacks"):
        tools.source(".", "finding:1")
    found.findings[0].where = [Place(file="/job/train.py", line=4, function="slow")]
    text = tools.source(".", "finding:1")
    assert count_tokens(text) <= 500
    assert ">4 «    time.sleep(1)»" in text
    found.findings[0].where = [Place(file="/etc/passwd", line=1, function="slow")]
    with pytest.raises(StepscopeError, match="not below the folders"):
        tools.source(".", "finding:1")
