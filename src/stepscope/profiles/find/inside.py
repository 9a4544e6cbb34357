"""What a trace says of its job in its first bytes: its rank, the number of ranks, the backend, and when it was recorded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from stepscope.formats.source import Source
from stepscope.lazy import dataclass, pattern
from stepscope.profiles.find.runs import RING, Entry
from stepscope.profiles.find.skipped import HEAD_BYTES

# A packed file has to be unpacked to its end for its last events.
LARGEST_UNPACKED = 256 << 20
_DISTRIBUTED = pattern(rb'"distributedInfo"\s*:\s*\{(.{0,4096})', re.DOTALL)
# The rank and the number of ranks together, in the order in which PyTorch writes them.
_BOTH = pattern(rb'"distributedInfo"[^{}]*\{[^{}]*?"rank":\s*(\d{1,6})\b[^{}]*?"world_size":\s*(\d{1,6})\b')
_RANK = pattern(rb'"rank"\s*:\s*"?(\d{1,6})\b')
_WORLD = pattern(rb'"world_size"\s*:\s*"?(\d{1,6})\b')
_BACKEND = pattern(rb'"backend"\s*:\s*"([^"]{1,40})"')
_BASE = pattern(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})\b')
_TIME = pattern(rb'"ts"\s*:\s*"?(\d{1,16}(?:\.\d{1,9})?)')
_NO_HEADER = ("xplane", "tf_events", RING)


@dataclass(frozen=True)
class Inside:
    """What it says. `rank_of` is the rank and the number of ranks, where PyTorch's header begins the file.

    `start_ns` is the time of its first events since 1970, or since another moment that all clocks of a machine share.
    """

    rank: int | None = None
    world: int | None = None
    backend: str = ""
    base_ns: int = 0
    start_ns: int | None = None
    rank_of: tuple[int, int] | None = None

    @property
    def is_of_many(self) -> bool:
        """Whether it knows that it is one rank of several, and which."""
        return self.rank is not None and self.world is not None and self.rank < self.world > 1


def look_inside(entries: Sequence[Entry]) -> dict[str, Inside]:
    """By path what each file says; files that say nothing are left out."""
    asked = [item for item in entries if item.format_hint not in _NO_HEADER]
    with ThreadPoolExecutor(8, thread_name_prefix="stepscope-scan") as pool:
        found = zip(asked, pool.map(_inside, asked), strict=True)
    return {item.path: inside for item, inside in found if inside is not None}


def rank_in(item: Entry) -> tuple[int, int] | None:
    """The rank and the number of ranks in the first bytes of a file; None where it does not say, or cannot be read."""
    inside = _inside(item)
    return None if inside is None else inside.rank_of


def last_event_ns(item: Entry, inside: Inside) -> int | None:
    """The time of its last events; None where finding it would take long."""
    latest = _latest(item) if item.filesystem is not None else _kept_latest(item)
    return None if latest is None else inside.base_ns + round(latest * 1000)


@lru_cache(maxsize=4096)  # as below; a packed file is unpacked to its end for it
def _kept_latest(item: Entry) -> float | None:
    return _latest(item)


def _latest(item: Entry) -> float | None:
    try:
        times = _times(_tail(item))
    except Exception:  # whatever is wrong with the file is reported when it is read
        return None
    return max(times, default=None)


def _inside(item: Entry) -> Inside | None:
    if item.filesystem is None:
        return _kept(item.path, item.size, item.mtime_ns)
    return _read(item.source())


@lru_cache(maxsize=4096)  # folders are looked at again and again while a page is open
def _kept(path: str, _size: int, _mtime_ns: int) -> Inside | None:
    return _read(Source(path))


def _read(source: Source) -> Inside | None:
    try:
        head, is_packed = source.opening(HEAD_BYTES)
        about = head
        if b'"distributedInfo"' not in head and not is_packed and source.filesystem is None:
            about = _plain_tail(source.path)  # some writers put the header behind the events
    except Exception:  # whatever is wrong with the file is reported when it is read
        return None
    spread = _DISTRIBUTED.search(about)
    text = spread[1] if spread else b""
    base = _number(_BASE, head) or _number(_BASE, about) or 0
    times = _times(head)
    backend, both = _BACKEND.search(text), _BOTH.search(head)
    return Inside(
        rank=_number(_RANK, text),
        world=_number(_WORLD, text),
        backend=backend[1].decode("ascii", "replace") if backend else "",
        base_ns=base,
        start_ns=base + round(_median(times) * 1000) if times else None,
        rank_of=None if both is None else (int(both[1]), int(both[2])),
    )


def _times(text: bytes) -> list[float]:
    """Of all events in a piece of text, in microseconds, without zeros."""
    return [time for time in map(float, _TIME.findall(text)) if time > 0]


def _median(times: list[float]) -> float:
    """As `statistics.median`, which takes longer to import than it takes to look at a hundred files."""
    ordered, half = sorted(times), len(times) // 2
    return ordered[half] if len(times) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _number(shape: re.Pattern[bytes], text: bytes) -> int | None:
    found = shape.search(text)
    return None if found is None else int(found[1])


def _tail(item: Entry) -> bytes:
    source = item.source()
    if not source.is_packed() and item.filesystem is None:
        return _plain_tail(item.path)
    if item.size > LARGEST_UNPACKED:
        return b""
    return b"".join(deque(source.pieces(HEAD_BYTES), maxlen=2))


def _plain_tail(path: str) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(max(0, Path(path).stat().st_size - HEAD_BYTES))
        return file.read(HEAD_BYTES)
