"""Where the recordings of graph captures are that belong to a profile: in the folder `capture_traces` next to it."""

from __future__ import annotations

from pathlib import Path

from stepscope.profiles.find.runs import CAPTURES, Entry

_MOST_FILES = 64  # an engine captures a few dozen batch sizes
_ENDINGS = (".json", ".json.gz")


def is_capture(path: str) -> bool:
    """Whether the file records a capture for the profiles beside its folder."""
    return CAPTURES in path.split("/")[:-1]


def capture_files(entry: Entry) -> list[Path]:
    """The recordings beside the file."""
    folder = Path(entry.path).parent / CAPTURES
    if entry.filesystem is not None or is_capture(entry.path) or not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith(_ENDINGS))[:_MOST_FILES]
