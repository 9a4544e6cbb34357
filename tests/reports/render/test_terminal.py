"""The report in a terminal."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

import stepscope
from stepscope.reports.build import report as build
from stepscope.reports.model.report import Profile, Report
from stepscope.reports.render.json import as_json
from stepscope.reports.render.terminal import as_text, report_lines
from stepscope.reports.tables.tables import ORDER
from tests.builders.reports import HOSTILE, report
from tests.reports.golden import FOLDER, check

SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"


def test_the_whole_report() -> None:
    check("terminal.txt", as_text(report(), width=110))


def test_a_narrow_window() -> None:
    check("terminal_80.txt", as_text(report(), width=80))


@pytest.mark.parametrize("width", [40, 60, 80, 110, 200])
def test_no_line_is_wider_than_the_window(width: int) -> None:
    hostile = report(hostile="x" * 500)
    lines = [line for line in report_lines(hostile, width) if line.cell_len > width]
    assert width < 100 or not lines  # figures are never clipped, so a very narrow window may be too narrow


def test_names_cannot_format_themselves() -> None:
    text = as_text(report(name=HOSTILE, hostile=HOSTILE))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]" in text  # not taken as markup
    styles = {
        str(span.style) for line in report_lines(report(hostile="[bold]x[/]"), 110) for span in line.spans
    }
    assert "bold" in styles  # of headings
    assert any("[bold]x[/]" in line.plain for line in report_lines(report(hostile="[bold]x[/]"), 110))


def test_problems_come_first() -> None:
    text = as_text(report())
    places = [
        text.index(words)
        for words in ("error: The file is cut short", "what to change", "where the time goes")
    ]
    assert places == sorted(places)
    assert text.index("error:") < 200


def test_truncation_is_loud() -> None:
    text = as_text(report())
    assert "… 2 of 412 rows of ops; --limit 0 shows all" in text
    assert "… 1 of 20 rows of live at the peak; --limit 0 shows all" in text


@pytest.mark.parametrize("section", ORDER)
def test_one_section(section: str) -> None:
    whole, alone = as_text(report()), as_text(report(), sections=[section])
    assert len(alone.splitlines()) < len(whole.splitlines())
    assert len(alone.splitlines()) > 3


def test_nothing_known() -> None:
    text = as_text(Report(profile=Profile(path="/x/y")))
    assert text == "/x/y\n  unknown framework · no device · no steps\n"


def test_without_steps() -> None:
    found = report()
    found.steps.rows, found.steps.count, found.steps.median_ns = [], 0, None
    text = as_text(found)
    assert "where the time goes  the whole recording, since no steps were found" in text
    assert "no steps" in text


def test_pieces_at_the_ends_are_said_to_be_left_out() -> None:
    found = report()
    found.steps.count, found.steps.partial = 3, 1
    assert "1 incomplete, left out" in as_text(found)


def test_the_whole_recording_is_called_that() -> None:
    found = report()
    found.steps.source = "whole"
    text = as_text(found)
    assert "no steps: the whole recording, " in text
    assert "the whole recording, since no steps were found" in text


def test_the_report_of_the_sample() -> None:
    """The report is kept too, so that this looks at the renderer alone; its own tests look at the figures."""
    kept = FOLDER / "sample.json"
    if os.environ.get("STEPSCOPE_GOLDEN") == "write":
        kept.write_text(as_json(_without_places_and_curves(build(SAMPLE, limit=10))), "utf-8")
    check("sample.txt", as_text(msgspec.json.decode(kept.read_bytes(), type=Report), width=110))


def _without_places_and_curves(found: Report) -> Report:
    """What a terminal does not show, and where the file happens to lie."""
    found.profile.path, found.profile.files = found.profile.name, [found.profile.name]
    found.device.timeline = []
    for device in found.memory.devices:
        device.timeline = []
    return found
