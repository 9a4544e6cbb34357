"""Readers, one per format, chosen by content."""

from __future__ import annotations

from stepscope.errors import UnreadableFile
from stepscope.formats.not_a_profile import READABLE, describe
from stepscope.formats.reader import Format, Progress, no_progress
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace


def detect(source: Source) -> Format:
    """The format of the file, by its first bytes."""
    # Not before a file has to be read: what is opened from the cache needs none of the readers.
    from stepscope.formats import trace_json as chrome_json
    from stepscope.formats.ring import draft as ring
    from stepscope.formats.tf1 import event_file as tf_events
    from stepscope.formats.xplane import draft as xplane

    head = source.head()
    # XPlane before JSON: a plane of 123 bytes begins with a newline and a brace.
    for candidate in (ring.FORMAT, tf_events.FORMAT, xplane.FORMAT, chrome_json.FORMAT):
        if candidate.matches(head, source.name):
            return candidate
    raise UnreadableFile(f"{source.path} is not a profile: {describe(source, head)}.", fix=READABLE)


def read(source: Source, progress: Progress = no_progress) -> Trace:
    """The file as a trace. Bad events become problems of the trace; a file that is no profile is an error."""
    from stepscope.trace.finish import finish

    return finish(detect(source).read(source, progress))
