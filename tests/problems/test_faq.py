"""The FAQ answers with the words of the catalogue."""

from __future__ import annotations

from pathlib import Path

from stepscope.problems.catalogue import CATALOGUE
from stepscope.problems.faq import QUESTIONS, page

FAQ = Path(__file__).parent.parent.parent / "docs" / "faq.md"


def test_the_page_is_up_to_date() -> None:
    assert FAQ.read_text("utf-8") == page(), "run: python -m stepscope.problems.faq docs/faq.md"


def test_every_cause_is_in_the_catalogue_and_answered_once_per_question() -> None:
    for question, codes in QUESTIONS.items():
        assert len(set(codes)) == len(codes), question
        assert set(codes) <= set(CATALOGUE), question


def test_what_to_do_is_said_for_each_tool() -> None:
    answer = page().split("## No step marker observed")[1].split("\n## ")[0]
    for call in (
        "prof.step()",
        "StepTraceAnnotation(",
        "tf.profiler.experimental.Trace(",
        "NVTX range",
        "roctx range",
    ):
        assert call in answer
