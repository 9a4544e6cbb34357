"""Lines of source code around a place that a stack names: only from folders that the user named when the server was started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.server.http.request import Query, Refused

LINES_AROUND = 6
LARGEST_FILE = 4 << 20
LONGEST_LINE = 500
LONGEST_PATH = 1_000
LAST_LINE = 10**9
# Code, and nothing that may lie beside it.
SUFFIXES = frozenset((".py", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"))


class Sources:
    """The folders below which code may be read; none by default."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = tuple(folder.resolve() for folder in folders)

    def around(self, query: Query) -> dict[str, Any]:
        """The lines around `line` of `file`, a path as the profile has it."""
        wanted, line = query.text("file", LONGEST_PATH), query.integer("line", 0, LAST_LINE)
        if not self.folders:
            raise Refused(
                "No folder with source code was named.", status=404, fix="stepscope serve --source FOLDER"
            )
        path = next(self._candidates(wanted), None)
        lines = None if path is None else _lines(path)
        if path is None or lines is None:
            fix = "--source names the folder that the job was started in."
            raise Refused("The file is not below the named folders.", status=404, fix=fix)
        first = max(1, min(line, len(lines)) - LINES_AROUND)
        return {"path": str(path), "first": first, "lines": lines[first - 1 : line + LINES_AROUND]}

    def _candidates(self, wanted: str) -> Iterator[Path]:
        """Files that the path may mean, each below a named folder once all links are followed; the most certain one first."""
        for folder in self.folders:
            for name in _ways(wanted):
                found = _resolved(folder / name)
                if found is not None and found.is_relative_to(folder) and found.suffix in SUFFIXES:
                    yield found


def _ways(wanted: str) -> Iterator[str]:
    """The path as it is, then without its first folders, as of a job on another machine; a bare name must be recorded as one."""
    parts = [part for part in PurePosixPath(wanted.replace("\\", "/")).parts if part != "/"]
    yield wanted
    for first in range(len(parts) - 1):
        yield "/".join(parts[first:])


def _resolved(path: Path) -> Path | None:
    """Where it is, if it is a file."""
    try:
        found = path.resolve(strict=True)
        return found if found.is_file() else None
    except (OSError, ValueError, RuntimeError):  # not there, not a name, or links in a circle
        return None


def _lines(path: Path) -> list[str] | None:
    try:
        if path.stat().st_size > LARGEST_FILE:
            return None
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return None
    return [line[:LONGEST_LINE] for line in text.splitlines()]


def source_folders(names: Sequence[str]) -> tuple[Path, ...]:
    """The folders of --source, which must exist."""
    found = tuple(map(Path, names))
    for folder in found:
        if not folder.is_dir():
            raise StepscopeError(
                f"{folder} is not a folder.", fix="Name a folder with source code after --source."
            )
    return found
