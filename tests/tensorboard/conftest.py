"""A real TensorBoard process, with our plugin found as an installed one would be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.patience import PATIENCE_S, tries

# Nothing here can be tested without it, and skipping while this file is read would stop pytest.
collect_ignore_glob = [] if find_spec("tensorboard") else ["test_*.py"]

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"


class Board:
    """A running TensorBoard; `log` is what it said so far."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.address = ""
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
        request = Request(f"{self.address}/{path}", headers=headers or {})
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, _lower(answer.headers), answer.read()
        except HTTPError as error:
            return error.code, _lower(error.headers), error.read()


Start = Callable[..., Board]
PREFIX = "/here/it%20is"


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log folder as a job leaves it."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "run1").mkdir()
    (folder / "run1" / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    return folder


class Boards:
    """The ways in which TensorBoard is started, each once and only if a test wants it."""

    def __init__(self, start: Start, logdir: Path, places: pytest.TempPathFactory) -> None:
        self._ways: dict[str, Callable[[], Board]] = {
            "plain": lambda: start("--logdir", str(logdir)),
            "spec": lambda: start(
                "--logdir_spec",
                f"mine:{logdir}",
                "--path_prefix",
                "/here/it is",
                "--stepscope_capture",
                prefix=PREFIX,
            ),
            "named": lambda: start(
                "--logdir",
                str(logdir),
                "--stepscope_allow_host=other.example,profiles.example.com",
                "--stepscope_capture",
                "--stepscope_capture_server=trainer.example:6009",
            ),
            "empty": lambda: start("--logdir", str(self.empty)),
            "broken": lambda: start("--logdir", str(logdir), ahead=self._without_polars()),
        }
        self._started: dict[str, Board] = {}
        self._places = places
        self.empty = places.mktemp("empty")
        (self.empty / "notes.txt").write_text("nothing")

    def __getitem__(self, name: str) -> Board:
        if name not in self._started:
            self._started[name] = self._ways[name]()
        return self._started[name]

    def _without_polars(self) -> Path:
        folder = self._places.mktemp("ahead")
        (folder / "polars.py").write_text("raise ImportError('polars is <b>not</b> well')")
        return folder


@pytest.fixture(scope="session")
def boards(start: Start, logdir: Path, tmp_path_factory: pytest.TempPathFactory) -> Boards:
    return Boards(start, logdir, tmp_path_factory)


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts TensorBoard with these flags; all are ended with the session."""
    running: list[Board] = []

    def started(*flags: str, ahead: Path | None = None, prefix: str = "") -> Board:
        place = tmp_path_factory.mktemp("board")
        log = place / "log.txt"
        # Port 0 is any that is free: one that we look for may be taken by others until TensorBoard does.
        words = ["--port", "0", "--host", "127.0.0.1", *flags]
        command = [sys.executable, "-m", "tensorboard.main", *words]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, env=_environment(place, ahead))
        board = Board(process, log)
        running.append(board)
        board.address = _address(board) + prefix
        return board

    yield started
    for board in running:
        board.process.terminate()
    for board in running:
        try:
            board.process.wait(10)
        except subprocess.TimeoutExpired:  # TensorFlow takes its time
            board.process.kill()
            board.process.wait()


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _environment(place: Path, ahead: Path | None) -> dict[str, str]:
    """With our sources, and where they are not installed, with the entry point of an installed package."""
    paths = [
        *([str(ahead)] if ahead else []),
        str(ROOT / "src"),
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
    ]
    if not any(each.name == "stepscope" for each in entry_points(group="tensorboard_plugins")):
        told = place / "site" / "stepscope-0.0.dist-info"
        told.mkdir(parents=True)
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: stepscope\nVersion: 0.0\n")
        (told / "entry_points.txt").write_text(_entry_points())
        paths.append(str(place / "site"))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "STEPSCOPE_CACHE": str(place / "cache"),
    }


def _entry_points() -> str:
    """As pyproject.toml has it: what is tested is what is installed."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    found = re.search(r'entry-points\.tensorboard_plugins\]\nstepscope = "(.+?)"', text)
    assert found is not None
    return f"[tensorboard_plugins]\nstepscope = {found[1]}\n"


def _address(board: Board) -> str:
    """What it says itself once it listens."""
    for _ in tries():
        found = re.search(r"http://127\.0\.0\.1:\d+", board.log)
        if found is not None:
            return found[0]
        if board.process.poll() is not None:
            raise AssertionError(f"TensorBoard ended:\n{board.log}")
    raise AssertionError(f"TensorBoard does not answer:\n{board.log}")
