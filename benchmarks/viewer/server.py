"""`stepscope serve` in a process of its own, and how much memory it takes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60


@dataclass(frozen=True)
class Served:
    """A server that has found its one run, and has not opened it yet."""

    url: str
    run: str
    pid: int

    def link(self) -> str:
        """The page of its trace."""
        return f"{self.url}#/trace?run={self.run}"

    def memory(self) -> dict[str, int]:
        """Bytes: resident now, of that its own (the rest are mapped files), and the most it ever held."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith("kB")}
        return {"resident": values["VmRSS"], "own": values["RssAnon"], "most": values["VmHWM"]}


@contextmanager
def serving(folder: Path, cache: Path) -> Iterator[Served]:
    """A fresh server over the folder."""
    command = [sys.executable, "-m", "stepscope", "serve", str(folder), "--no-open", "--port", "0"]
    process = subprocess.Popen(
        command, env=os.environ | {"STEPSCOPE_CACHE": str(cache)}, stdout=subprocess.PIPE, text=True
    )
    try:
        url = _address(process)
        yield Served(url, _run(url), process.pid)
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        found = re.search(r"http://\S+", said)
        if found:
            return found[0].rstrip("/") + "/"
    raise SystemExit(f"the server said only: {said}")


def _run(url: str) -> str:
    """The id of the one run below the folder."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with urllib.request.urlopen(f"{url}api/runs", timeout=PATIENCE_S) as answer:
            runs = json.load(answer)["runs"]
        if runs:
            return str(runs[0]["id"])
        time.sleep(0.1)
    raise SystemExit("the server found no run")
