"""The tab behind a reverse proxy with a name of its own: everything is shown, and SQL waits for that name to be allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.patience import PATIENCE_S, tries
from tests.tensorboard.conftest import Board, Boards
from tests.tensorboard.proxy import proxied
from tests.tensorboard.test_plugin import PLUGIN, runs

NAME = "profiles.example.com"
QUERY = {"query": "SELECT COUNT(*) AS n FROM events"}


class Visitor:
    """A browser that opened the tab through a proxy: its name is in Host and Origin of all that it sends."""

    def __init__(self, address: str, name: str = NAME) -> None:
        self._address = address
        self._name = name
        found = re.search(rb'name="stepscope-token" content="([^"]+)"', self.ask("index.html")[1])
        assert found is not None
        self._token = found[1].decode()

    def ask(self, path: str, body: Any = None) -> tuple[int, bytes]:
        """GET, or POST where there is a body; what is being prepared is waited for."""
        headers = {"Host": self._name, "Sec-Fetch-Site": "same-origin"}
        if body is not None:
            headers |= {"Origin": f"https://{self._name}", "Content-Type": "application/json"}
            headers["X-Stepscope-Token"] = self._token
        data = None if body is None else json.dumps(body).encode()
        for _ in tries():
            try:
                request = Request(f"{self._address}/{PLUGIN}/{path}", data, headers)
                with urlopen(request, timeout=PATIENCE_S) as answer:
                    status, said = answer.status, answer.read()
            except HTTPError as error:
                return error.code, error.read()
            if status != 202:
                break
        return status, said


@pytest.fixture(scope="module", params=["its own name", "our name"])
def keeps_host(request: pytest.FixtureRequest) -> bool:
    """A proxy passes on its own name, or the one by which it calls us."""
    return bool(request.param == "its own name")


@pytest.fixture(scope="module", params=["plain", "named"])
def board(boards: Boards, request: pytest.FixtureRequest) -> Board:
    return boards[request.param]


@pytest.fixture
def visitor(board: Board, keeps_host: bool) -> Iterator[Visitor]:
    with proxied(board.address, "/team/tb", keeps_host=keeps_host) as address:
        yield Visitor(address)


def test_pages_and_figures_work(visitor: Visitor, board: Board) -> None:
    (run,) = runs(board)["runs"]
    for path in ("index.js", "index.html", "web/shell/main.js", "api/state", "api/runs", f"api/runs/{run['id']}/report",
                 f"api/runs/{run['id']}/table/events?limit=5", f"api/runs/{run['id']}/flame", f"api/runs/{run['id']}/timeline/layout"):  # fmt: skip
        status, body = visitor.ask(path)
        assert status == 200, path
        assert body


def test_sql_is_answered_under_names_that_are_allowed(visitor: Visitor, board: Board, boards: Boards) -> None:
    (run,) = runs(board)["runs"]
    status, body = visitor.ask(f"api/runs/{run['id']}/sql", QUERY)
    if board is boards["named"]:
        assert status == 200, body
        assert json.loads(body)["rows"][0][0] > 0
    else:
        assert status == 403
        told = json.loads(body)["error"]
        assert told["what"].startswith("SQL and capture are not answered to a page")
        assert NAME in told["what"]
        assert f"--stepscope_allow_host={NAME}" in told["fix"]


def test_so_is_capture(boards: Boards, keeps_host: bool) -> None:
    with proxied(boards["named"].address, keeps_host=keeps_host) as address:
        status, body = Visitor(address).ask("api/capture", {"target": "10.1.2.3:6009"})
        assert status == 403
        assert "--stepscope_capture_server" in json.loads(body)["error"]["fix"]
        assert json.loads(Visitor(address).ask("api/capture")[1])["servers"] == ["trainer.example:6009"]


def test_another_name_is_still_another_one(boards: Boards, keeps_host: bool) -> None:
    board = boards["named"]
    (run,) = runs(board)["runs"]
    with proxied(board.address, keeps_host=keeps_host) as address:
        evil = Visitor(address, "evil.example")
        assert evil.ask("api/runs")[0] == 200
        assert evil.ask(f"api/runs/{run['id']}/sql", QUERY)[0] == 403
        assert evil.ask("api/capture", {"target": "1"})[0] == 403


def test_without_a_proxy_nothing_has_to_be_named(boards: Boards) -> None:
    board = boards["plain"]
    (run,) = runs(board)["runs"]
    own = board.address.removeprefix("http://")
    answers = []
    for origin in (f"http://{own}", "http://evil.example", "null", None):
        headers = {"Content-Type": "application/json", "X-Stepscope-Token": Visitor(board.address)._token}
        headers |= {} if origin is None else {"Origin": origin}
        request = Request(
            f"{board.address}/{PLUGIN}/api/runs/{run['id']}/sql", json.dumps(QUERY).encode(), headers
        )
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                answers.append(answer.status)
        except HTTPError as error:
            answers.append(error.code)
    assert answers == [200, 403, 403, 403]
