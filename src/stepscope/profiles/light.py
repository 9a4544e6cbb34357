"""The light window beside a trace: device activity and launches of the steps before it, recorded without what slows the host.

Only the analysis of promises asks for it, so it is read then, and not when a profile is opened. Its name follows from that of
the trace; what a sidecar says is not taken for a path.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from stepscope import formats
from stepscope.errors import StepscopeError
from stepscope.formats.reader import no_progress
from stepscope.formats.source import Source
from stepscope.lazy import dataclass
from stepscope.profiles.find.paths import locate
from stepscope.profiles.find.sidecars import light_path
from stepscope.trace.trace import Trace

_MOST_MOMENTS = 1_000


class _Moment(msgspec.Struct):
    unix_ns: int
    perf_counter_ns: int


class _Clock(msgspec.Struct):
    start: _Moment
    end: _Moment


class _Note(msgspec.Struct):
    """What the sidecar says of a light window that was recorded."""

    file: str
    clock: _Clock
    moments_ns: list[int] = []

    @property
    def makes_sense(self) -> bool:
        rises = all(before < after for before, after in pairwise(self.moments_ns))
        return 2 <= len(self.moments_ns) <= _MOST_MOMENTS and rises

    def unix_ns(self) -> list[int]:
        """The moments since 1970: the two clocks drift apart, if slowly."""
        start, end = self.clock.start, self.clock.end
        length = max(1, end.perf_counter_ns - start.perf_counter_ns)
        rate = (end.unix_ns - start.unix_ns) / length
        return [start.unix_ns + round((moment - start.perf_counter_ns) * rate) for moment in self.moments_ns]


@dataclass(frozen=True)
class LightRecording:
    """`moments`: when its first step began and when each of them ended, on the time axis of its trace."""

    trace: Trace
    moments: list[int]


def read_light(trace: Trace) -> LightRecording | str | None:
    """The light window beside this trace; why it cannot be read; None where none was recorded."""
    info = trace.info
    note = _note(info.capture.get("light"))
    path = light_path(info.path)
    if note is None or path is None:
        return None
    if note.file != path.rsplit("/", 1)[-1] or not note.makes_sense:
        return "what the sidecar says of it makes no sense"
    try:
        place = locate(path)
        light = formats.read(Source(place.path, place.filesystem), no_progress)
    except StepscopeError as error:
        return error.what
    except Exception as error:  # remote filesystems raise anything
        return f"{type(error).__name__}: {error}"
    base = light.info.base_unix_ns
    return LightRecording(light, [moment - base for moment in note.unix_ns()])


def _note(value: Any) -> _Note | None:
    try:
        return msgspec.convert(value, _Note)
    except msgspec.ValidationError:
        return None
