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
    """A running server: where it is, and the number of its process."""

    url: str
    pid: int

    def get(self, path: str) -> Any:
        """JSON of the server."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            return json.load(answer)

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
        yield Served(_address(process), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        link = re.search(r"http://\S+", said)
        if link:
            return link[0].rstrip("/") + "/"
    raise AssertionError(f"the server said only: {said}")
