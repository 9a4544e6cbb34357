"""A format: what it is, how its files are recognised, and the reader, which never fails on bad events."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from stepscope.formats.source import Source
from stepscope.lazy import dataclass

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

# Told the bytes of the stored file that were read so far.
Progress = Callable[[int], None]
USUAL_TURN = 50


def no_progress(_: int) -> None:
    """For callers that do not watch."""


@dataclass(frozen=True)
class Format:
    """One format. A module with such a value is imported whenever a folder is searched: `read` imports the reader itself.

    `matches` sees the first 64 KiB of the unpacked content and the file's name, and should be strict: the first
    format that matches, by `turn`, reads the file. In a folder, a file whose name ends in one of `suffixes` (also with .gz)
    is a profile; others are opened, and asked `is_inside(head)`, or `matches` with an empty name.
    """

    name: str
    summary: str  # in the list of supported formats; empty: not listed
    matches: Callable[[bytes, str], bool]
    read: Callable[[Source, Progress], Draft]
    suffixes: tuple[str, ...] = ()
    is_inside: Callable[[bytes], bool] | None = None
    # Where the first bytes do not suffice: files with this in their name are searched; returns why there is no profile.
    searched_names: str = ""
    search: Callable[[IO[bytes], int], str] | None = None
    turn: int = USUAL_TURN
    written_by: str = ""  # in Markdown, for docs/formats.md, as the next two
    versions: str = ""
    verified: str = ""

    def holds(self, head: bytes) -> bool:
        """Whether a file in a folder that begins so is a profile of this format."""
        return self.is_inside(head) if self.is_inside is not None else self.matches(head, "")
