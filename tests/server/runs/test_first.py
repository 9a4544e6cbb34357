"""What an earlier server kept of a run is answered before the run is open, and only while its files are the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.reports.kept import Asked
from stepscope.server.app import make_app
from stepscope.server.runs import opened
from stepscope.server.runs.first import FirstAnswers
from stepscope.server.runs.watch import Place
from tests.server.conftest import Asking


def test_a_report_and_a_first_view_are_there_before_the_run_is_open(
    alone: tuple[Asking, Path], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path_factory.mktemp("kept") / "cache"))
    before, folder = alone
    (run,) = (each["id"] for each in before.runs().values())
    key = before.get(f"api/runs/{run}/timeline/layout").get_json()["key"]
    first = (
        f"api/runs/{run}/report",
        f"api/runs/{run}/timeline/layout",
        f"api/runs/{run}/timeline/tiles?key={key}&level=20&index=0&blocks=0",
    )
    answers = [before.get(each) for each in first]
    after = Asking(make_app([Place(str(folder))]))
    (listed,) = after.app.runs.look_now().runs.values()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("what was kept needs no profile")

    monkeypatch.setattr(opened, "load_run", refuse)
    monkeypatch.setattr(after.app.opened, "begin", lambda _: None)
    for each, answer in zip(first, answers, strict=True):
        again = after.get(each)
        assert again.data == answer.data
        assert again.headers.get("Content-Encoding") == answer.headers.get("Content-Encoding")
        assert again.headers["Cache-Control"] == answer.headers["Cache-Control"]
    file = Path(listed.run.entries[0].path)
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    assert FirstAnswers(listed).report_json(Asked()) is None
    after.app.close()
