"""The areas of a ring file, read with care: any byte may be wrong, and the process may have ended in the middle of a slot."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterator

from stepscope.errors import UnreadableFile
from stepscope.lazy import dataclass
from stepscope.ring_layout import (
    AREA,
    HEADER,
    TEXT,
    VERSION,
    WORD_BYTES,
    Area,
)

# The file may say anything; ours have half of it.
_MOST_SLOTS = 1 << 24
_LATEST_NS = 1 << 62
_AREAS = 5


@dataclass(frozen=True)
class RingBytes:
    """The file, and where its areas are. Times are of `perf_counter`; `zero_ns` was the moment `unix_ns`."""

    data: memoryview
    pid: int
    zero_ns: int
    unix_ns: int
    facts: Area
    names: Area
    telemetry: Area
    steps: Area
    events: Area


def opened(data: memoryview, path: str) -> RingBytes:
    """Reads the header. A file that is cut short has areas with fewer slots."""
    if len(data) < HEADER.size + _AREAS * AREA.size:
        raise UnreadableFile(f"{path} is cut off in its header.", fix="Copy it again.")
    _, version, count, pid, zero_ns, unix_ns = HEADER.unpack_from(data, 0)
    if version != VERSION or count != _AREAS:
        raise UnreadableFile(
            f"{path} is a ring of version {version}, and this stepscope reads version {VERSION}.",
            fix="Read it with the stepscope that recorded it.",
        )
    if not 0 <= zero_ns < _LATEST_NS or not 0 <= unix_ns < _LATEST_NS:
        raise UnreadableFile(f"{path} has a damaged header: its clocks make no sense.", fix="Copy it again.")
    found = [_area(data, HEADER.size + place * AREA.size, path) for place in range(_AREAS)]
    if found[3].slot != WORD_BYTES or found[4].slot != WORD_BYTES:
        raise UnreadableFile(f"{path} has a damaged header: sizes of slots.", fix="Copy it again.")
    return RingBytes(data, pid, zero_ns, unix_ns, *found)


def _area(data: memoryview, at: int, path: str) -> Area:
    offset, slot, slots = AREA.unpack_from(data, at)
    if slot == 0:
        raise UnreadableFile(f"{path} has a damaged header: sizes of slots.", fix="Copy it again.")
    return Area(offset, slot, max(0, min(slots, _MOST_SLOTS, (len(data) - offset) // slot)))


def texts(ring: RingBytes, area: Area) -> Iterator[tuple[int, bytes]]:
    """Number and content of each text that is whole, in the order of the slots."""
    if area.slot < TEXT.size:
        return
    for slot in range(area.slots):
        at = area.offset + slot * area.slot
        number, length, checksum = TEXT.unpack_from(ring.data, at)
        if number == 0 or length > area.slot - TEXT.size:
            continue
        text = bytes(ring.data[at + TEXT.size : at + TEXT.size + length])
        if zlib.crc32(text) == checksum:
            yield number, text


def step_moments(ring: RingBytes) -> list[int]:
    """The content of each slot; 0 where no step has ended yet."""
    return list(int64s(ring.data[ring.steps.offset : ring.steps.end]))


def int64s(data: memoryview) -> array[int]:
    """The words of an area, whatever the byte order of this machine."""
    found: array[int] = array("q")
    found.frombytes(data[: len(data) // 8 * 8])
    if sys.byteorder == "big":
        found.byteswap()
    return found
