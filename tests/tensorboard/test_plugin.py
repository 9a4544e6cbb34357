"""The tab in a real TensorBoard, over HTTP."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

from stepscope.tensorboard.plugin import places
from tests.patience import tries
from tests.tensorboard.conftest import Board, Boards

PLUGIN = "data/plugin/stepscope"


def listing(board: Board) -> dict[str, Any]:
    """TensorBoard's own list of tabs."""
    found: dict[str, Any] = json.loads(board.get("data/plugins_listing")[2])
    return found


def until(ask: Any, wanted: Any) -> Any:
    """Ask until the answer is what is wanted."""
    for _ in tries():
        answer = ask()
        if wanted(answer):
            break
    return answer


def runs(board: Board) -> dict[str, Any]:
    """The list of runs, when the first look is over."""
    ask = lambda: json.loads(board.get(f"{PLUGIN}/api/runs")[2])  # noqa: E731
    found: dict[str, Any] = until(ask, lambda answer: not answer["scanning"])
    return found


@pytest.fixture(scope="module")
def board(boards: Boards) -> Board:
    return boards["plain"]


def test_the_tab_is_there_and_active(board: Board) -> None:
    runs(board)
    tab = until(lambda: listing(board)["stepscope"], lambda found: found["enabled"])
    assert tab["enabled"]
    assert tab["tab_name"] == "stepscope"
    assert tab["loading_mechanism"]["module_path"].endswith("/stepscope/index.js")


def test_beside_other_plugins(board: Board) -> None:
    found = listing(board)
    assert "scalars" in found
    if find_spec("xprof") is not None:
        assert "profile" in found


def test_the_page_and_its_files(board: Board) -> None:
    for path, kind in (
        ("index.js", "javascript"),
        ("index.html", "html"),
        ("web/shell/main.js", "javascript"),
    ):
        status, headers, body = board.get(f"{PLUGIN}/{path}")
        assert status == 200, path
        assert kind in headers["content-type"]
        assert headers["x-content-type-options"] == "nosniff"
        assert body
    assert b"render" in board.get(f"{PLUGIN}/index.js")[2]
    tag = board.get(f"{PLUGIN}/web/shell/main.js")[1]["etag"]
    assert board.get(f"{PLUGIN}/web/shell/main.js", {"If-None-Match": tag})[0] == 304


def test_a_report(board: Board) -> None:
    (run,) = runs(board)["runs"]
    assert run["name"] == "run1/tiny_gpt.pt.trace.json.gz"
    address = f"{PLUGIN}/api/runs/{run['id']}/report"
    status, _, body = until(lambda: board.get(address), lambda answer: answer[0] != 202)
    assert status == 200
    assert json.loads(body)["schema"] == "stepscope.report/2"


def test_capture_is_off(board: Board) -> None:
    state = json.loads(board.get(f"{PLUGIN}/api/state")[2])
    assert state["capture"] is False
    assert state["in_tensorboard"] is True
    assert board.get(f"{PLUGIN}/api/capture")[0] == 403


def test_any_host_name_is_tensorboards_business(board: Board) -> None:
    assert board.get(f"{PLUGIN}/api/state", {"Host": "proxy.example.com"})[0] == 200


def test_strange_addresses(board: Board) -> None:
    for path in ("", "../../x", "web/../../x", "%00", "api/runs/x/report", "nix", "web//etc/passwd"):
        assert board.get(f"{PLUGIN}/{path}")[0] in (200, 404), path


def test_nothing_warns(board: Board) -> None:
    board.get(f"{PLUGIN}/index.html")
    assert "will become an error" not in board.log
    assert "Traceback" not in board.log


def test_logdir_spec_and_prefix_and_capture(boards: Boards) -> None:
    board = boards["spec"]
    (run,) = runs(board)["runs"]
    assert run["place"] == "mine"
    assert board.get(f"{PLUGIN}/index.html")[0] == 200
    assert json.loads(board.get(f"{PLUGIN}/api/state")[2])["capture"] is True
    tab = until(lambda: listing(board)["stepscope"], lambda found: found["enabled"])
    assert tab["enabled"]


def test_an_empty_folder_says_why(boards: Boards) -> None:
    board = boards["empty"]
    found = runs(board)
    assert found["runs"] == []
    assert found["skipped"][0]["path"].endswith("notes.txt")
    assert listing(board)["stepscope"]["enabled"] is False
    assert board.get(f"{PLUGIN}/index.html")[0] == 200


def test_a_failing_import_leaves_tensorboard_running(boards: Boards) -> None:
    board = boards["broken"]
    assert listing(board)["stepscope"]["enabled"] is True
    status, headers, body = board.get(f"{PLUGIN}/index.html")
    assert status == 200
    assert b"polars is &lt;b&gt;not&lt;/b&gt; well" in body
    assert "script" not in headers["content-security-policy"]
    assert b"render" in board.get(f"{PLUGIN}/index.js")[2]


@pytest.mark.parametrize(
    ("logdir", "spec", "expected"),
    [
        ("/logs", "", [("/logs", "")]),
        ("", "a:/x,b:rel/y", [("/x", "a"), ("rel/y", "b")]),
        ("", "/x:y,gs://bucket/logs,plain", [("/x:y", ""), ("gs://bucket/logs", ""), ("plain", "")]),
        ("", "", []),
    ],
)
def test_places(logdir: str, spec: str, expected: list[tuple[str, str]]) -> None:
    assert [(place.path, place.name) for place in places(logdir, spec)] == expected
