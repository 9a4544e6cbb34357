"""Nsight Systems: the SQLite database that `nsys export` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

MAGIC = b"SQLite format 3\0"
# In the schema of every export; a database of something else has neither.
_OWN_TABLES = (b"META_DATA_EXPORT", b"CUPTI_ACTIVITY_KIND_", b"NVTX_EVENTS", b"TARGET_INFO_")


def _matches(head: bytes, name: str) -> bool:
    return head.startswith(MAGIC)


def _is_inside(head: bytes) -> bool:
    return head.startswith(MAGIC) and any(table in head for table in _OWN_TABLES)


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.nsys.draft import read

    return read(source, progress)


FORMAT = Format(
    name="nsys",
    summary="Nsight Systems (*.sqlite, by nsys export)",
    matches=_matches,
    is_inside=_is_inside,
    read=_read,
    suffixes=(".sqlite",),
    written_by="Nsight Systems, `nsys export --type sqlite`; see [Nsight Systems](formats/nsys.md)",
    versions="schema 3.x; tables and columns are probed, so older schemas are read as far as possible",
    verified="counts and sums of every table equal plain SQL over the file (schema 3.25, 2 × H100)",
)
