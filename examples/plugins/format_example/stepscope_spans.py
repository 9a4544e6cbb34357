"""A format for stepscope: spans as lines of text, `thread,name,start in µs,duration in µs` below a first line `spans/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

_FIRST_LINE = b"spans/1\n"


def matches(head: bytes, name: str) -> bool:
    """By the first line alone: other files must not be taken for one."""
    return head.startswith(_FIRST_LINE)


def read(source: Source, progress: Progress) -> Draft:
    """A track for each thread, and an annotation for each line; lines that make no sense are counted."""
    import polars as pl  # here: the module is imported whenever a folder is searched

    from stepscope.trace.draft import Draft
    from stepscope.trace.problems import problem
    from stepscope.trace.trace import TraceInfo

    lines = bytes(source.content()).decode(errors="replace").splitlines()[1:]
    progress(source.bytes_read)
    spans = [span for line in lines if (span := _parse(line)) is not None]
    if len(spans) < len(lines):
        detail = "{count} lines are not spans and were left out."
        source.problems.add(problem("damaged-events", detail, count=len(lines) - len(spans), case="lines"))
    threads = list(dict.fromkeys(thread for thread, *_ in spans))
    events = pl.DataFrame(
        {
            "track": [threads.index(thread) for thread, *_ in spans],
            "name": [name for _, name, _, _ in spans],
            "kind": ["annotation"] * len(spans),
            "source_category": ["span"] * len(spans),
            "start_ns": [start for *_, start, _ in spans],
            "dur_ns": [length for *_, length in spans],
        },
        schema_overrides={"track": pl.UInt32, "start_ns": pl.Int64, "dur_ns": pl.Int64},
    )
    tracks = pl.DataFrame(
        {
            "id": range(len(threads)),
            "process": ["spans"] * len(threads),
            "thread": threads,
            "device_kind": ["cpu"] * len(threads),
            "what": ["host"] * len(threads),
        },
        schema_overrides={"id": pl.UInt32, "thread": pl.String, "process": pl.String},
    )
    info = TraceInfo(path=source.path, format=FORMAT.name)
    return Draft(info=info, events=events, tracks=tracks, problems=source.problems)


def _parse(line: str) -> tuple[str, str, int, int] | None:
    """Thread, name, start and duration in ns."""
    try:
        thread, name, start, length = line.split(",")
        return thread, name, round(float(start) * 1000), round(float(length) * 1000)
    except (ValueError, OverflowError):
        return None


FORMAT = Format(name="spans", summary="spans (*.spans)", matches=matches, read=read, suffixes=(".spans",))
