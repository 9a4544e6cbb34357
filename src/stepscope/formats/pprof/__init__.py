"""Device memory profiles of JAX: the pprof file that `jax.profiler.save_device_memory_profile` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

_SAMPLE_TYPE, _MOST_TYPE_BYTES = 0x0A, 16


def _matches(head: bytes, name: str) -> bool:
    """Begins with the types of its values: short messages of two numbers, `type` and `unit`."""
    at, types = 0, 0
    while len(head) > at + 2 and head[at] == _SAMPLE_TYPE and head[at + 1] <= _MOST_TYPE_BYTES:
        if not _is_type(head[at + 2 : at + 2 + head[at + 1]]):
            return False
        at += 2 + head[at + 1]
        types += 1
    return types > 0 and (len(head) <= at or head[at] in (0x12, 0x1A, 0x22, 0x2A, 0x32))


def _is_type(message: bytes) -> bool:
    return len(message) in (2, 4) and message[0] in (0x08, 0x10) and max(message[1::2]) < 0x80


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.pprof.draft import read

    return read(source, progress)


FORMAT = Format(
    name="pprof",
    summary="JAX device memory profiles (*.prof)",
    matches=_matches,
    read=_read,
    written_by="`jax.profiler.save_device_memory_profile`; see [memory snapshots](formats/memory-snapshot.md#jax)",
    versions="pprof with `space` in bytes",
    verified="files that tests write; a file of JAX was not at hand",
)
