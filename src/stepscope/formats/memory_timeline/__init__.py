"""PyTorch's memory timeline: what `prof.export_memory_timeline("….raw.json.gz")` writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

_START = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*,\s*[1-4]\s*,\s*-?\d+\s*,\s*[0-7]\s*\]")


def _matches(head: bytes, name: str) -> bool:
    return _START.match(head) is not None


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.memory_timeline.draft import read

    return read(source, progress)


FORMAT = Format(
    name="memory_timeline",
    summary="PyTorch memory timelines (*.raw.json.gz)",
    matches=_matches,
    read=_read,
    suffixes=(".raw.json", "memory_timeline.raw"),
    turn=20,  # before other JSON
    written_by='`torch.profiler`, `export_memory_timeline("….raw.json.gz")`; see [memory snapshots](formats/memory-snapshot.md#memory-timelines)',
    versions="PyTorch 2.0 and newer",
    verified="bytes by category at every moment equal a running sum over `json.load`",
)
