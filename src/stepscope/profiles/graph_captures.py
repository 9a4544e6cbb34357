"""Recordings of graph captures beside a profile: they name the work of its graph replays.

Serving engines record the capture of their graphs into `capture_traces/`, one file for each batch size and rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.profiles.find.runs import CAPTURES, Entry
from stepscope.trace.graphs import Capture, captures, is_graph_launch, named_by_captures
from stepscope.trace.trace import Trace

_MOST_FILES = 64  # an engine captures a few dozen batch sizes
_ENDINGS = (".json", ".json.gz")


def is_capture(path: str) -> bool:
    """Whether the file records a capture for the profiles beside its folder."""
    return CAPTURES in path.split("/")[:-1]


def with_names(trace: Trace, entry: Entry, read: Callable[[Entry], Trace]) -> Trace:
    """The trace, its graph replays named by recorded captures, if there are any."""
    files = _files(entry)
    if not files or not is_graph_launch(trace.events).any():
        return trace
    found: list[Capture] = []
    for file in files:
        try:
            found += captures(read(replace(entry, path=str(file), size=file.stat().st_size)))
        except (StepscopeError, OSError):
            continue  # another JSON file of the engine
    return named_by_captures(trace, found)


def _files(entry: Entry) -> list[Path]:
    """The recordings beside the file."""
    folder = Path(entry.path).parent / CAPTURES
    if entry.filesystem is not None or is_capture(entry.path) or not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith(_ENDINGS))[:_MOST_FILES]
