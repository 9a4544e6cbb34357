"""The magics in a real IPython shell."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("IPython")
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from stepscope.notebook import serving
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"
CELL = """
import time
total = 0
for number in range(3):
    time.sleep(0.005)
    total += number
    stepscope.step()
total
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """With settings of its own and without a history: not those of the user."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made: Any = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    made.run_line_magic("load_ext", "stepscope")
    made.run_cell("import stepscope")
    yield made
    serving.stop()
    InteractiveShell.clear_instance()


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    shutil.copy(SAMPLE, tmp_path)
    return tmp_path


def status(address: str) -> int:
    try:
        with urlopen(address, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_the_page_in_a_frame(shell: Any, logdir: Path) -> None:
    frame = shell.run_line_magic("stepscope", f"{logdir} --height 400")
    html = frame._repr_html_()
    assert "<iframe" in html
    assert 'height="400"' in html
    place, _, link = frame.src.partition("#")
    assert status(place) == 200
    assert link.startswith("/overview?run=")
    with urlopen(f"{place}api/runs", timeout=PATIENCE_S) as answer:
        assert b"tiny_gpt" in answer.read()


def test_no_second_server(shell: Any, logdir: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    shutil.copy(SAMPLE, other / "again.pt.trace.json.gz")
    first = shell.run_line_magic("stepscope", str(logdir)).src
    second = shell.run_line_magic("stepscope", str(other)).src
    third = shell.run_line_magic("stepscope", "").src
    assert first.partition("#")[0] == second.partition("#")[0] == third
    assert first != second
    with urlopen(f"{third}api/state", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    assert str(logdir) in text
    assert str(other) in text


def test_nobody_gets_in_without_the_secret(shell: Any, logdir: Path) -> None:
    address = shell.run_line_magic("stepscope", str(logdir)).src
    root = "/".join(address.split("/")[:3])
    for path in ("/", "/api/runs", "/guess/api/runs", "/index.html", "//", "/%00/"):
        assert status(root + path) == 404
    with urlopen(address.partition("#")[0], timeout=PATIENCE_S) as answer:
        assert "frame-ancestors" not in answer.headers["Content-Security-Policy"]


def test_behind_jupyterhub(shell: Any, logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/me/")
    assert shell.run_line_magic("stepscope", str(logdir)).src.startswith("/user/me/proxy/")


def test_in_colab(shell: Any, logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, dict[str, str]]] = []
    colab = SimpleNamespace(
        output=SimpleNamespace(serve_kernel_port_as_iframe=lambda port, **more: asked.append((port, more)))
    )
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    assert shell.run_line_magic("stepscope", str(logdir)) is None
    ((port, more),) = asked
    assert status(f"http://127.0.0.1:{port}{more['path'].partition('#')[0]}") == 200


@pytest.mark.parametrize("line", ["/no/such/folder", "--nix", "'open", "--height x"])
def test_wrong_lines_are_told_in_one_sentence(shell: Any, line: str) -> None:
    with pytest.raises(UsageError):
        shell.run_line_magic("stepscope", line)


def test_a_cell_is_recorded_and_its_report_shown(shell: Any, tmp_path: Path) -> None:
    with capture_output() as said:
        shell.run_cell_magic("stepscope", f"{tmp_path / 'out'} --no-stacks", CELL)
    assert shell.user_ns["total"] == 3
    assert list((tmp_path / "out").rglob("*.json*"))
    shown = [output.data for output in said.outputs if "text/html" in output.data]
    assert shown
    assert "stepscope" in shown[-1]["text/html"]


def test_a_cell_that_fails_still_has_a_report(shell: Any, tmp_path: Path) -> None:
    with capture_output() as said:
        shell.run_cell_magic("stepscope", str(tmp_path / "out"), "sum(range(1000))\n1 / 0")
    assert "ZeroDivisionError" in said.stdout
    assert [output for output in said.outputs if "text/html" in output.data]


def test_stop_and_unload(shell: Any, logdir: Path) -> None:
    address = shell.run_line_magic("stepscope", str(logdir)).src
    shell.run_line_magic("stepscope", "--stop")
    try:
        assert status(address) != 200  # another program may have got the port meanwhile
    except OSError:
        pass
    shell.run_line_magic("unload_ext", "stepscope")
    assert shell.find_line_magic("stepscope") is None
    shell.run_line_magic("load_ext", "stepscope")


def test_reports_and_profiles_draw_themselves(shell: Any) -> None:
    shell.run_cell(f"profile = stepscope.load({str(SAMPLE)!r}); found = stepscope.report(profile)")
    drawn, _ = shell.display_formatter.format(shell.user_ns["found"])
    assert "<script" not in drawn["text/html"]
    assert "compute" in drawn["text/html"]
    drawn, _ = shell.display_formatter.format(shell.user_ns["profile"])
    assert "<table" in drawn["text/html"]


def test_without_ipython_nothing_of_it_is_imported() -> None:
    script = "import sys, stepscope; assert not any(name.startswith(('IPython', 'stepscope.notebook')) for name in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
