"""Readers, one per format, chosen by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.errors import UnreadableFile
from stepscope.formats.reader import Format, Progress, no_progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.trace import Trace


def detect(source: Source) -> Format:
    """The format of the file, by its first bytes."""
    from stepscope.formats.mangled import is_mangled, refuse
    from stepscope.formats.not_a_profile import describe, suggest_export
    from stepscope.formats.registry import describe_supported, find_formats

    head = source.head()
    if is_mangled(head):
        raise refuse(source.path)
    for candidate in find_formats():
        if candidate.matches(head, source.name):
            return candidate
    what = f"{source.path} is not a profile: {describe(source, head)}."
    raise UnreadableFile(what, fix=suggest_export(source.name, source.path) or describe_supported())


def read(source: Source, progress: Progress = no_progress) -> Trace:
    """The file as a trace. Bad events become problems of the trace; a file that is not a profile is an error."""
    from stepscope.trace.finish import finish

    return finish(detect(source).read(source, progress))
