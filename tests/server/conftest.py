"""One app over a folder of real profiles, asked without a network; and one behind a real socket."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from stepscope.server.app import App, make_app
from stepscope.server.http.guard import TOKEN_HEADER
from stepscope.server.runs.watch import Place
from tests.patience import tries

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"
FIXTURES = ROOT / "tests" / "fixtures"
# One profile of each kind of file, all small.
PROFILES = {
    "gpt.pt.trace.json.gz": SAMPLE,
    "graph.pt.trace.json.gz": FIXTURES / "kineto" / "cuda_graph.pt.trace.json.gz",
    "events.out.tfevents.1794707819.vm": FIXTURES / "tf_events" / "events.out.tfevents.1794707819.vm",
    "jax.xplane.pb.gz": FIXTURES / "diagnosis" / "jax_input.slow.xplane.pb.gz",
}


class Asking:
    """Asks an app as the page does: again while it is loading, and with the token."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.client = Client(app)

    def get(self, path: str, **options: Any) -> TestResponse:
        """The answer; one that is being prepared is waited for."""
        for _ in tries():
            answer = self.client.get(f"/{path}", **options)
            if answer.status_code != 202:
                break
        return answer

    def post(self, path: str, body: Any, **headers: str) -> TestResponse:
        """With the page's token, as JSON."""
        sent = {TOKEN_HEADER: self.app.settings.guard.page_token, **headers}
        return self.client.post(
            f"/{path}", data=json.dumps(body), headers=sent, content_type="application/json"
        )

    def runs(self) -> dict[str, dict[str, Any]]:
        """The runs by their names, as of now."""
        self.app.runs.look_now()
        return {run["name"]: run for run in self.get("api/runs").get_json()["runs"]}

    def id_of(self, name: str = "gpt.pt.trace.json.gz") -> str:
        """The id of a run."""
        return str(self.runs()[name]["id"])


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good profiles of several formats, a broken one, and other files."""
    folder = tmp_path_factory.mktemp("served") / "logs"
    folder.mkdir()
    for name, source in PROFILES.items():
        target = folder / name.split(".")[0] / name if name.startswith("events") else folder / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)
    (folder / "broken.pt.trace.json.gz").write_bytes(SAMPLE.read_bytes()[:5000])
    (folder / "notes.txt").write_text("no profile")
    return folder


@pytest.fixture(scope="session")
def app(logs: Path) -> Iterator[App]:
    made = make_app([Place(str(logs))])
    made.runs.look_now()
    yield made
    made.close()


@pytest.fixture(scope="session")
def asking(app: App) -> Asking:
    return Asking(app)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[Asking, Path]]:
    """An app over a folder that the test may change."""
    shutil.copy(SAMPLE, tmp_path / "one.pt.trace.json.gz")
    made = make_app([Place(str(tmp_path))])
    yield Asking(made), tmp_path
    made.close()
