"""What an earlier server kept of a run is answered before the run is open, and only while its files are the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.server.runs import opened
from tests.server.conftest import Asking, make_app
from tests.server.runs.test_watch import Place


def test_a_report_and_a_first_view_are_there_before_the_run_is_open(
    alone: tuple[Asking, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    before, folder = alone
    (name,) = before.runs()
    run = before.runs()[name]["id"]
    report = before.get(f"api/runs/{run}/report").data
    layout = before.get(f"api/runs/{run}/timeline/layout").data
    tiles = f"api/runs/{run}/timeline/tiles?key={before.get(f'api/runs/{run}/timeline/layout').get_json()['key']}&level=20&index=0&blocks=0"
    tile = before.get(tiles)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("what was kept needs no profile")

    after = Asking(make_app([Place(str(folder))]))
    after.runs()
    monkeypatch.setattr(opened, "load_run", refuse)
    monkeypatch.setattr(after.app.opened, "begin", lambda _: None)
    assert after.get(f"api/runs/{run}/report").data == report
    assert after.get(f"api/runs/{run}/timeline/layout").data == layout
    again = after.get(tiles)
    assert (again.data, again.headers.get("Content-Encoding")) == (tile.data, tile.headers.get("Content-Encoding"))
    monkeypatch.undo()
    file = next(folder.iterdir())
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    assert after.app._kept_answer is not None
    after.app.close()
