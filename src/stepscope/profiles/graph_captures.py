"""Recordings of graph captures beside a profile: they name the work of its graph replays.

Serving engines record the capture of their graphs into `capture_traces/`, one file for each batch size and rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stepscope.errors import StepscopeError
from stepscope.profiles.find.captures import capture_files
from stepscope.profiles.find.runs import Entry
from stepscope.trace.graphs import Capture, captures, is_graph_launch, named_by_captures
from stepscope.trace.trace import Trace


def with_names(trace: Trace, entry: Entry, read: Callable[[Entry], Trace]) -> Trace:
    """The trace, its graph replays named by recorded captures, if there are any."""
    files = capture_files(entry)
    if not files or not is_graph_launch(trace.events).any():
        return trace
    found: list[Capture] = []
    for file in files:
        try:
            found += captures(read(replace(entry, path=str(file), size=file.stat().st_size)))
        except (StepscopeError, OSError):
            continue  # another JSON file of the engine
    return named_by_captures(trace, found)
