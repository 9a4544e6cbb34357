"""A report and a doctor run on the same defective file show the same title, cause and fix, in every form of output."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from stepscope.analysis.options import Options
from stepscope.doctor.diagnose import diagnose
from stepscope.doctor.profile.problems import KNOWN
from stepscope.doctor.text import lines
from stepscope.problems.catalogue import CATALOGUE
from stepscope.profiles.load import load
from stepscope.profiles.overview import overview
from stepscope.reports.build import build
from stepscope.reports.render.html import as_html
from stepscope.reports.render.json import as_json
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from tests.doctor.files import WRONG, Way

# Folders without a profile have no report; the doctor alone shows these.
WITHOUT_REPORT = {"leftover-files", "never-stopped"}
CASES = [
    pytest.param(code, way, id=f"{code}-{place}")
    for code in sorted(set(WRONG) & set(KNOWN) - WITHOUT_REPORT)
    for place, way in enumerate(WRONG[code])
]


def squeezed(text: str) -> str:
    """Without markup, escapes and line breaks, which each form of output has its own of."""
    return re.sub(r"[\s\\`*]+", "", unescape(re.sub(r"</?[a-z][^>]*>", "", text)))


@pytest.mark.thorough
@pytest.mark.parametrize(("code", "way"), CASES)
def test_report_and_doctor_agree(tmp_path: Path, code: str, way: Way) -> None:
    path = str(way(tmp_path))
    report = build(load(path), Options(), sections=["problems"])
    reported = [(each.title, each.cause, each.fix) for each in report.problems if each.code == code]
    diagnosed = [(each.title, each.cause, each.fix) for each in diagnose(path).results if each.code == code]
    assert reported and reported == diagnosed
    assert {cause for _, cause, _ in reported} == {CATALOGUE[code].cause}


def test_every_form_of_output_shows_them(tmp_path: Path) -> None:
    profile = load(str(WRONG["truncated"][0](tmp_path)))
    report = build(profile, Options())
    (problem,) = [each for each in report.problems if each.code == "truncated"]
    found = diagnose(profile.path)
    shown = {
        "terminal": as_text(report),
        "html": as_html(report),
        "markdown": as_markdown(report),
        "json": as_json(report),
        "info": "\n".join(each.title + each.cause + each.fix for each in overview(profile).problems),
        "doctor": "\n".join(each.plain for each in lines(found)),
        "docs": (Path(__file__).parent.parent.parent / "docs" / "problems.md").read_text("utf-8"),
    }
    for name, text in shown.items():
        for words in (problem.title, problem.cause, problem.fix):
            assert squeezed(words) in squeezed(text), name
