"""The newest run is open before anyone asks, and nothing that would cost much is opened on a guess."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.server import preload
from stepscope.server.app import App, make_app
from stepscope.server.preload import open_ahead
from stepscope.server.runs.watch import Place
from tests.patience import PATIENCE_S
from tests.server.conftest import SAMPLE


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "gpt.pt.trace.json.gz").write_bytes(SAMPLE.read_bytes())
    made = make_app([Place(str(tmp_path))])
    yield made
    made.close()


def _state(app: App) -> str:
    (run,) = app.runs.look_now().runs.values()
    return app.opened.state(run)[0]


def test_the_newest_run_is_ready_with_its_rows(app: App) -> None:
    open_ahead(app).join(PATIENCE_S)
    assert _state(app) == "ready"
    (run,) = app.runs.found().runs.values()
    made: list[str] = []
    app.opened.get(run).kept("timeline store 0", lambda: made.append("again"))
    assert made == []


def test_a_large_run_waits_until_it_is_asked_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "MOST_BYTES", 10)
    open_ahead(app).join(PATIENCE_S)
    assert _state(app) == "new"


def test_a_broken_run_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.pt.trace.json").write_text('{"traceEvents": 7')
    app = make_app([Place(str(tmp_path))])
    open_ahead(app).join(PATIENCE_S)
    assert _state(app) in ("failed", "new")
    app.close()


def test_an_empty_folder_opens_nothing(tmp_path: Path) -> None:
    app = make_app([Place(str(tmp_path))])
    open_ahead(app).join(PATIENCE_S)
    assert not app.runs.found().runs
    app.close()
