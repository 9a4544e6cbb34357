"""The ring that a killed recording leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source
from stepscope.ring_layout import ENDING, MAGIC

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft


def _matches(head: bytes, name: str) -> bool:
    return head.startswith(MAGIC)


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.ring.draft import read

    return read(source, progress)


FORMAT = Format(
    name="stepscope-ring",
    summary="",  # nobody looks for one
    matches=_matches,
    read=_read,
    suffixes=(ENDING,),
    turn=10,
    written_by="stepscope's own capture, for a process that was killed (`*.stepscope.ring`)",
    versions="1, described in [the ring](capture/ring.md)",
    verified="round trips; torn, truncated, full and implausible files",
)
