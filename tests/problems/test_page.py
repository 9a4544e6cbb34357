"""The page docs/problems.md is generated from the catalogue."""

from __future__ import annotations

from pathlib import Path

from stepscope.problems import compared, file, hangs, ranks, recording
from stepscope.problems.page import page
from tests.test_docs import first_column

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "problems.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m stepscope.problems.page docs/problems.md"


def test_every_problem_of_a_report_is_on_it() -> None:
    codes = [entry.code for module in (compared, file, hangs, ranks, recording) for entry in module.ENTRIES]
    assert first_column(page()) == sorted(codes)


def test_the_page_shows_title_cause_and_fix() -> None:
    text = page().replace("\\|", "|").replace("&lt;", "<")
    for module in (compared, file, hangs, ranks, recording):
        for entry in module.ENTRIES:
            for said in entry.examples():
                assert said.title in text and said.cause in text and said.fix in text
