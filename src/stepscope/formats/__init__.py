"""Readers, one per format, chosen by content."""

from __future__ import annotations

from stepscope.errors import UnreadableFile
from stepscope.formats import chrome_json, tf_events, xplane
from stepscope.formats.foreign import READABLE, describe
from stepscope.formats.reader import Format, Progress, no_progress
from stepscope.formats.source import Source
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace

# XPlane before JSON: a plane of 123 bytes begins with a newline and a brace.
FORMATS: tuple[Format, ...] = (tf_events.FORMAT, xplane.FORMAT, chrome_json.FORMAT)


def detect(source: Source) -> Format:
    """The format of the file, by its first bytes."""
    head = source.head()
    for candidate in FORMATS:
        if candidate.matches(head, source.name):
            return candidate
    raise UnreadableFile(f"{source.path} is not a profile: {describe(source, head)}.", fix=READABLE)


def read(source: Source, progress: Progress = no_progress) -> Trace:
    """The file as a trace. Bad events become problems of the trace; a file that is no profile is an error."""
    return finish(detect(source).read(source, progress))
