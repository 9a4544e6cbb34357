"""Copies of a rank's file next to it: byte for byte the same, so not a rank or a capture of their own."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from stepscope.profiles.find.inside import rank_in
from stepscope.profiles.find.runs import Entry
from stepscope.profiles.find.walk import Skipped

_CHUNK = 1 << 20


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
    """Those that hold what an older one of the same size holds, and that one. Names with other times are other captures.

    Asked are only those that say that they are one rank of several.
    """
    first: dict[tuple[bytes, int | None], Entry] = {}
    found: dict[str, Entry] = {}
    for item in sorted(
        candidates, key=lambda each: (each.time_ns is None, each.mtime_ns, len(each.path), each.path)
    ):
        told = rank_in(item)
        if told is None or told[1] < 2:
            continue
        digest = _digest(item.path, item.size, item.mtime_ns)
        if digest is None:
            continue
        times = [time for known, time in first if known == digest and item.time_ns in (None, time)]
        original = first.setdefault((digest, times[0] if times else item.time_ns), item)
        if original is not item:
            found[item.path] = original
    return found


@lru_cache(maxsize=4096)  # folders are looked at again and again while a page is open
def _digest(path: str, _size: int, _mtime_ns: int) -> bytes | None:
    """Of all its bytes."""
    try:
        digest = hashlib.blake2b(digest_size=16)
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except Exception:  # whatever is wrong with the file is told when it is read
        return None
    return digest.digest()
