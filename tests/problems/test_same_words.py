"""A report and a doctor run on the same defective file show the same title, cause and fix, in every form of output.

That they agree on each defect, `tests/doctor/test_profile.py` checks beside the doctor's own answer.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from stepscope.analysis.options import Options
from stepscope.doctor.diagnose import diagnose
from stepscope.doctor.text import lines
from stepscope.profiles.load import load
from stepscope.profiles.overview import overview
from stepscope.reports.build import build
from stepscope.reports.render.html import as_html
from stepscope.reports.render.json import as_json
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from tests.doctor.files import WRONG


def squeezed(text: str) -> str:
    """Without markup, escapes and line breaks, which each form of output has its own of."""
    return re.sub(r"[\s\\`*]+", "", unescape(re.sub(r"</?[a-z][^>]*>", "", text)))


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
