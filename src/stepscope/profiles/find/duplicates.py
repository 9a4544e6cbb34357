"""Copies of a rank's file next to it: byte for byte the same, so not a rank or a capture of their own."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from stepscope.formats.source import Source
from stepscope.profiles.find.runs import Entry
from stepscope.profiles.find.skipped import HEAD_BYTES
from stepscope.profiles.find.walk import Skipped

_DISTRIBUTED = re.compile(
    rb'"distributedInfo"[^{}]*\{[^{}]*?"rank":\s*(\d{1,6})\b[^{}]*?"world_size":\s*(\d{1,6})\b'
)
_CHUNK = 1 << 20


def rank_inside(source: Source) -> tuple[int, int] | None:
    """The rank and the number of ranks in the first bytes of a file."""
    found = _DISTRIBUTED.search(source.head(HEAD_BYTES))
    return None if found is None else (int(found[1]), int(found[2]))


def rank_in(item: Entry) -> tuple[int, int] | None:
    """The same of an entry; of a file of this machine that has not changed, it is looked up once."""
    if item.filesystem is not None:
        return rank_inside(item.source())
    return _kept_rank(item.path, item.size, item.mtime_ns)


@lru_cache(maxsize=4096)
def _kept_rank(path: str, _size: int, _mtime_ns: int) -> tuple[int, int] | None:
    return rank_inside(Source(path))


def without_copies(entries: Sequence[Entry]) -> tuple[list[Entry], list[Skipped]]:
    """Leave out copies. Only files that name their rank of several: others may well be the same twice."""
    alike: defaultdict[tuple[str, int, int | None], list[Entry]] = defaultdict(list)
    for item in entries:
        if item.filesystem is None and item.size:
            alike[item.folder, item.size, item.rank].append(item)
    originals: dict[str, Entry] = {}
    for candidates in alike.values():
        if len(candidates) > 1:
            originals |= _copies(candidates)
    skipped = [Skipped(path, f"a copy of {original.name}") for path, original in originals.items()]
    return [item for item in entries if item.path not in originals], skipped


def _copies(candidates: Sequence[Entry]) -> dict[str, Entry]:
    """Those that hold what an older one of the same size holds, and that one. Names with other times are other captures."""
    first: dict[tuple[bytes, int | None], Entry] = {}
    found: dict[str, Entry] = {}
    for item in sorted(
        candidates, key=lambda each: (each.time_ns is None, each.mtime_ns, len(each.path), each.path)
    ):
        digest = _digest(item.path, item.size, item.mtime_ns)
        if digest is None:
            continue
        times = [time for known, time in first if known == digest and item.time_ns in (None, time)]
        original = first.setdefault((digest, times[0] if times else item.time_ns), item)
        if original is not item:
            found[item.path] = original
    return found


@lru_cache(maxsize=4096)  # folders are looked at again and again while a page is open
def _digest(path: str, size: int, mtime_ns: int) -> bytes | None:
    """Of all its bytes, if it says that it is one rank of several."""
    try:
        told = _kept_rank(path, size, mtime_ns)
        if told is None or told[1] < 2:
            return None
        digest = hashlib.blake2b(digest_size=16)
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except Exception:  # whatever is wrong with the file is told when it is read
        return None
    return digest.digest()
