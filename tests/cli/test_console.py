"""Progress: on a terminal, for long loads, and never when silence was asked for."""

from __future__ import annotations

import sys
import time
from io import StringIO

import pytest
from rich.console import Console

from stepscope.cli.console import Color, Talk
from tests.patience import PATIENCE_S


class Terminal(StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, seconds: float, *, quiet: bool = False, is_terminal: bool = True
) -> str:
    """What stderr gets while a load takes so long."""
    stream = Terminal() if is_terminal else StringIO()
    now = iter([0.0, *[seconds] * 100])
    monkeypatch.setattr("stepscope.cli.console.time.monotonic", lambda: next(now))
    monkeypatch.setattr(sys, "stderr", stream)
    talk = Talk(quiet, False, Color.auto, {True: Console(file=stream, force_terminal=is_terminal, width=100)})
    with talk.progress("Reading") as tell:
        tell(0, 1000)
        tell(1000, 1000)
    return stream.getvalue()


def test_a_long_load_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Reading" in shown(monkeypatch, 1.1)


def test_a_short_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, 0.9) == ""


def test_silence_on_request_and_in_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, 5, quiet=True) == ""
    assert shown(monkeypatch, 5, is_terminal=False) == ""


@pytest.mark.parametrize(
    ("after", "quiet", "is_terminal", "appears"),
    [
        (0.0, False, True, True),
        (3600, False, True, False),
        (0.0, True, True, False),
        (0.0, False, False, False),
    ],
)
def test_work_of_unknown_length_shows_one_line(
    monkeypatch: pytest.MonkeyPatch, after: float, quiet: bool, is_terminal: bool, appears: bool
) -> None:
    stream = Terminal() if is_terminal else StringIO()
    monkeypatch.setattr("stepscope.cli.console.SHOW_PROGRESS_AFTER_S", after)
    monkeypatch.setattr(sys, "stderr", stream)
    talk = Talk(quiet, False, Color.auto, {True: Console(file=stream, force_terminal=is_terminal, width=100)})
    with talk.working("Comparing"):
        ends = time.monotonic() + PATIENCE_S
        while appears and "Comparing" not in stream.getvalue() and time.monotonic() < ends:
            time.sleep(0.01)
    assert ("Comparing" in stream.getvalue()) is appears


def test_remarks_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    talk = Talk(quiet=True, color=Color.never)
    talk.note("a remark")
    talk.warn("a warning [red]")
    assert capsys.readouterr().err == "a warning [red]\n"
