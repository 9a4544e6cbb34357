"""`stepscope serve` in a process of its own, for the tests, the benchmark and the pictures of the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S, tries


@dataclass(frozen=True)
class Served:
    """A running server: where it is, the number of its process, and the token that it asks for."""

    url: str
    pid: int
    token: str

    def get(self, path: str) -> Any:
        """JSON of the server."""
        return json.loads(self.read(path))

    def read(self, path: str) -> bytes:
        """Whatever the server answers to one who has the token."""
        asked = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return bytes(answer.read())

    def sign_in(self, page: Any) -> None:
        """The cookie of the link that the server prints, without opening the page, which would open a run."""
        answer = page.context.request.get(f"{self.url}?token={self.token}")
        assert answer.ok, answer.status

    def runs(self, is_enough: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """The ids of runs by the folders that they are in, once the server has found enough of them."""
        found: dict[str, str] = {}
        for _ in tries():
            found = {run["name"].split("/")[0]: run["id"] for run in self.get("api/runs")["runs"]}
            if is_enough(found):
                return found
        raise AssertionError(f"the server found only {sorted(found)}")


@contextmanager
def serving(
    folder: Path | str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[Served]:
    """A fresh server over the folder, which ends with the block."""
    command = [sys.executable, "-m", "stepscope", "serve", str(folder), "--no-open", "--port", "0"]
    process = subprocess.Popen(
        command, env=os.environ | dict(env or {}), cwd=cwd, stdout=subprocess.PIPE, text=True
    )
    try:
        url, token = _link(process)
        yield Served(url, process.pid, token)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _link(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        link = re.search(r"(http://\S+/)\?token=(\S+)\s", said)
        if link:
            return link[1], link[2]
    raise AssertionError(f"the server said only: {said}")
