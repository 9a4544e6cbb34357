"""What every format offers: a name, a test of the content, and a reader that never fails on bad events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

# Told the bytes of the stored file that were read so far.
Progress = Callable[[int], None]


def no_progress(_: int) -> None:
    """For callers that do not watch."""


@dataclass(frozen=True)
class Format:
    """One format. `matches` sees the first 64 KiB of the unpacked content and the file's name."""

    name: str
    matches: Callable[[bytes, str], bool]
    read: Callable[[Source, Progress], Draft]
