"""Which files of a folder a run changed."""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 50_000
_SKIPPED = {".git", "__pycache__", "node_modules", ".venv"}


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file, as far as the first fifty thousand."""
    found: dict[str, tuple[int, int]] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = Path(root, name)
            try:
                facts = path.stat()
            except OSError:
                continue
            found[str(path.relative_to(folder))] = facts.st_size, facts.st_mtime_ns
            if len(found) >= _MOST:
                return found
    return found


def changed_files(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> list[str]:
    """Written, replaced or deleted in between."""
    return sorted(
        [path for path, facts in after.items() if before.get(path) != facts]
        + [path for path in before if path not in after]
    )
