"""Whether to read the ranks of a run in processes of their own; asked before anything else of this package is imported."""

from __future__ import annotations

import os

from stepscope.errors import StepscopeError
from stepscope.formats import flight_recorder
from stepscope.profiles.find.catalog import Places, choose, scan

LIKE_BYTES = 2 << 20  # what a rank costs besides reading its bytes, in bytes
WORTH_BYTES = 64 << 20
_PATTERN = set("*?[")


def worth_processes(path: Places, run: str | None = None) -> bool:
    """Whether processes of their own save time: several ranks on this machine's disks, and enough to read.

    A process takes about a second to start; a small rank takes a third of that, as long as reading some megabytes.
    """
    places = [path] if isinstance(path, str | os.PathLike) else list(path)
    several = len(places) > 1 or any(
        os.path.isdir(each) or _PATTERN & set(os.fspath(each))  # noqa: PTH112
        for each in places
    )
    if not several or (os.cpu_count() or 1) < 2:
        return False
    try:
        catalog = scan(path)
        if not catalog.runs:
            return False
        chosen = choose(catalog, run)
    except StepscopeError:
        return False  # which is told where it is read
    if all(entry.format_hint == flight_recorder.FORMAT.name for entry in chosen.entries):
        return False  # dumps are small, and read by processes of their own
    local = all(entry.filesystem is None for entry in chosen.entries)
    return (
        local and len(chosen.entries) > 1 and sum(e.size + LIKE_BYTES for e in chosen.entries) >= WORTH_BYTES
    )
