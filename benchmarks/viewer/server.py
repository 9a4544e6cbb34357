"""The server of the viewer's benchmark, and how much memory it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser import serving as started


@dataclass(frozen=True)
class Served:
    """A server that has found its one run, and has not opened it yet."""

    server: started.Served
    run: str

    def link(self, page: str = "trace") -> str:
        """A page of it."""
        return f"{self.server.url}#/{page}?run={self.run}"

    def sign_in(self, page: Any) -> None:
        """Before anything is measured."""
        self.server.sign_in(page)

    def memory(self) -> dict[str, int]:
        """Bytes: resident now, of that its own (the rest are mapped files), and the most it ever held."""
        lines = Path(f"/proc/{self.server.pid}/status").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith("kB")}
        return {"resident": values["VmRSS"], "own": values["RssAnon"], "most": values["VmHWM"]}


@contextmanager
def serving(folder: Path, cache: Path) -> Iterator[Served]:
    """A fresh server over the folder."""
    with started.serving(folder, {"STEPSCOPE_CACHE": str(cache)}) as server:
        (run,) = server.runs(bool).values()
        yield Served(server, run)
