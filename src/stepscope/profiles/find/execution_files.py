"""Execution traces in the folder of a profile."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.formats.execution_trace.header import process_of
from stepscope.formats.source import Source
from stepscope.profiles.find.runs import Entry

_MOST_FILES = 1024  # of a folder, one for each rank
_HEAD = 512
_ENDINGS = (".json", ".json.gz", ".et")
_PROFILE = ".pt.trace.json"


def execution_files(entry: Entry) -> list[tuple[str, Path]]:
    """Execution traces in the folder of the file, each with its process."""
    folder = Path(entry.path).parent
    if entry.filesystem is not None:
        return []
    try:
        return list(_listed(str(folder), folder.stat().st_mtime_ns))
    except OSError:
        return []


@lru_cache(maxsize=64)
def _listed(folder: str, changed: int) -> tuple[tuple[str, Path], ...]:
    """All ranks of a folder ask for the same list."""
    names = sorted(each.name for each in os.scandir(folder) if each.name.endswith(_ENDINGS))
    paths = [Path(folder, name) for name in names if _PROFILE not in name][:_MOST_FILES]
    found = ((_process(path), path) for path in paths)
    return tuple((str(process), path) for process, path in found if process is not None)


def _process(path: Path) -> int | None:
    try:
        return process_of(Source(str(path)).head(_HEAD)) if path.is_file() else None
    except (OSError, StepscopeError):
        return None
