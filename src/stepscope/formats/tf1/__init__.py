"""TensorFlow 1: RunMetadata in event files."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft


EVENT_FILES = "tfevents."  # in the names that TensorBoard's writers give


def _matches(head: bytes, name: str) -> bool:
    from stepscope.formats.tf1.detect import matches

    return matches(head, name)


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.tf1.event_file import read

    return read(source, progress)


def _search(file: IO[bytes], size: int) -> str:
    from stepscope.formats.tf1.search import search

    return search(file, size)


def _is_inside(head: bytes) -> bool:
    return False  # nearly all such files hold scalars only: those that are named so are searched


FORMAT = Format(
    name="tf-events",
    summary="TensorFlow event files with RunMetadata",
    matches=_matches,
    read=_read,
    is_inside=_is_inside,
    searched_names=EVENT_FILES,
    search=_search,
    turn=20,
    written_by="TensorFlow 1 `RunMetadata` in TensorBoard event files",
    versions="TFRecord framing with its checksums; microsecond and nanosecond fields",
    verified="a recording of TensorFlow 2.21 in graph mode",
)
