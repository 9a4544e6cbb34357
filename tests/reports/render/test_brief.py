"""The report on one screen."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

import stepscope
from stepscope.reports.model.report import Gap, NamedTime, Place, Profile, Report
from stepscope.reports.render.brief import as_brief, brief_lines, brief_name
from stepscope.reports.wording.sentence import write_sentence
from tests.builders.reports import HOSTILE, KERNEL, report
from tests.reports.golden import FOLDER, check

LINES, WIDTH = 25, 100


def said(found: Report) -> str:
    """The short report of one whose sentence is written."""
    found.sentence = write_sentence(found)
    return as_brief(found)


def test_the_short_report() -> None:
    check("brief.txt", said(report()))


def test_the_short_report_of_the_sample() -> None:
    kept = msgspec.json.decode((FOLDER / "sample.json").read_bytes(), type=Report)
    check("brief_sample.txt", as_brief(kept))


@pytest.mark.parametrize("hostile", ["x" * 500, "word " * 100, HOSTILE, "load_images"])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_fits(hostile: str, width: int) -> None:
    found = report(name=hostile, hostile=hostile)
    found.findings *= 4
    found.problems *= 5
    found.breakdown *= 9
    found.steps.region = hostile
    found.sentence = write_sentence(found)
    lines = brief_lines(found, width)
    assert max(line.cell_len for line in lines) <= width
    assert len(lines) <= LINES or width < WIDTH


@pytest.mark.parametrize("width", range(60, 101, 4))
def test_advice_that_is_cut_repeats_nothing(width: int) -> None:
    found = report()
    words = [f"word{number}{'x' * (number % 17)}" for number in range(60)]
    found.findings[0].fix = " ".join(words)
    found.sentence = write_sentence(found)
    shown = [
        word for line in brief_lines(found, width) for word in line.plain.split() if word.startswith("word")
    ]
    assert len(shown) > 3
    assert shown == words[: len(shown)]


def test_names_cannot_format_themselves() -> None:
    text = said(report(name=HOSTILE, hostile=HOSTILE))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_order() -> None:
    text = said(report())
    places = ["The device waits for data. A step takes", "error: The file is cut short", "where the time goes", "what to change", "not known", "more  "]  # fmt: skip
    assert [text.index(place) for place in places] == sorted(text.index(place) for place in places)
    assert "1. The device waits for data · speed-up 1.20–1.40×" in text
    assert "→ DataLoader(num_workers=8)" in text
    assert "stepscope report runs/job --full" in text


def test_a_finding_has_its_function_and_line() -> None:
    found = report()
    found.findings[0].where = [Place("/srv/code/data/loading/augment.py", 25, "__getitem__")]
    assert "· __getitem__ (augment.py:25)" in said(found)


def test_a_wait_gives_way_to_its_caller() -> None:
    found = report()
    wait = "<built-in method acquire of _thread.lock object at 0x7f00>"
    found.breakdown[1].names = [NamedTime(name=wait, ns=31_000_000, detail="train.py(12): fetch")]
    text = said(found)
    assert "fetch (train.py:12) 97 %" in text
    assert "acquire" not in text


def test_kernels_have_their_op() -> None:
    assert brief_name(KERNEL, "aten::mm") == "tile_kernel (aten::mm)"
    assert "tile_kernel (aten::mm) 95 %" in said(report())


def test_small_parts_are_one_row() -> None:
    found = report()
    small = [
        msgspec.structs.replace(found.breakdown[1], part=part, ns=1000, share=0.0001)
        for part in ("python", "dispatch", "sync")
    ]
    found.breakdown += small
    assert "others" in said(found)
    assert "Python, dispatch, synchronisation" in said(found)


def test_what_is_not_known() -> None:
    found = report()
    found.coverage.gaps = [
        Gap(what="memory", share=1.0, reason="profile_memory was off.", fix="profile_memory=True"),
        Gap(what="stacks", share=0.6, reason="Threads without a stack."),
        Gap(what="shapes", share=0.1, reason="Ops without inputs."),
    ]
    assert "not known  memory (profile_memory was off); stacks of 60.0 % of ops\n" in said(found)


def test_nothing_known() -> None:
    text = said(Report(profile=Profile(path="/x/y")))
    assert text.startswith("/x/y  unknown framework · no device · no steps\n")
    assert "no work that could be accounted for" in text


def test_print_shows_one_screen() -> None:
    path = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"
    found = stepscope.report(os.fspath(path))
    assert str(found) == as_brief(found)
    assert len(str(found).splitlines()) <= LINES
