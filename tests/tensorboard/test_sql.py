"""SQL in TensorBoard reads nothing but the tables: a sample, since the engine is the page's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.patience import PATIENCE_S, tries
from tests.profiles.sql.attempts import STATEMENTS, check, trap
from tests.tensorboard.conftest import Board, Boards
from tests.tensorboard.test_plugin import PLUGIN, runs


def asked(board: Board, run: str, token: str, sql: str) -> tuple[int, str]:
    """The status and the text of the answer, when the run is open."""
    headers = {"Content-Type": "application/json", "X-Stepscope-Token": token, "Origin": board.address}
    address = f"{board.address}/{PLUGIN}/api/runs/{run}/sql"
    for _ in tries():
        request = Request(address, json.dumps({"query": sql}).encode(), headers)
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                status, text = answer.status, answer.read().decode()
        except HTTPError as error:
            status, text = error.code, error.read().decode()
        if status != 202:
            break
    return status, text


def test_nothing_else_is_read(boards: Boards, tmp_path: Path) -> None:
    board = boards["plain"]
    (run,) = [each["id"] for each in runs(board)["runs"]]
    token = page_token(board)
    status, text = asked(board, run, token, "SELECT COUNT(*) AS n FROM events")
    found: dict[str, Any] = json.loads(text)
    assert (status, found["rows"]) == (200, [[9065]])

    def told(sql: str) -> str:
        status, text = asked(board, run, token, sql)
        assert status in (200, 400)
        return text

    with trap(tmp_path) as caught:
        assert check(list(STATEMENTS[:25]), caught, told) > 50


def page_token(board: Board) -> str:
    """What the page's own code sends with what costs much."""
    page = board.get(f"{PLUGIN}/index.html")[2].decode()
    found = re.search(r'name="stepscope-token" content="([^"]+)"', page)
    assert found is not None
    return found[1]
