"""Put files together that do not say of which job they are, and whose names say nothing: by what their processes did.

Ranks of one job are different processes that call the same ops in the same order at the same time, and exchange something.
Files of one folder that do all of that are one run; jobs of a sweep do not exchange anything.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache

from stepscope.formats.source import Source
from stepscope.lazy import dataclass, pattern
from stepscope.profiles.find.file_names import natural
from stepscope.profiles.find.inside import Inside, last_event_ns, look_inside
from stepscope.profiles.find.joined import FILES_ASKED, is_settled
from stepscope.profiles.find.runs import UNRANKED_GAP_NS, Entry, ordered
from stepscope.profiles.find.skipped import HEAD_BYTES

# So many ops in the same order are no coincidence.
FEWEST_OPS = 10
# Where a file has its first exchange between ranks only beyond this, it counts as having none.
MOST_SEARCHED = 256 << 20
# Before this a time is no time of day but a clock that began with the machine.
_CALENDAR_NS = 10**17
_WRITTEN = pattern(r"\.\d{16,19}\.pt\.trace\.json(\.gz)?$")
_OP = pattern(rb'\{[^{}]{0,2000}?"cat"\s*:\s*"cpu_op"[^{}]{0,2000}')
_NAME = pattern(rb'"name"\s*:\s*"((?:[^"\\]|\\.){1,400})"')
_PROCESS = pattern(rb'"pid"\s*:\s*"?(\d{1,10})')
_EXCHANGE = pattern(rb"nccl|rccl|c10d::|gloo:|all_?reduce|DistributedDataParallel", re.IGNORECASE)


@dataclass(frozen=True)
class _Program:
    """The first ops of a file, and the processes that called them."""

    ops: tuple[bytes, ...]
    processes: frozenset[bytes]

    def is_alike(self, other: _Program) -> bool:
        """Whether another process did the same."""
        common = min(len(self.ops), len(other.ops))
        return (
            common >= FEWEST_OPS
            and not self.processes & other.processes
            and self.ops[:common] == other.ops[:common]
        )


@dataclass(frozen=True)
class _Unknown:
    """A file that does not know its rank, and is a run by itself so far."""

    item: Entry
    inside: Inside

    @property
    def program(self) -> _Program:
        return _program(self.item.path, self.item.size, self.item.mtime_ns)

    @property
    def written_ns(self) -> int | None:
        """When it was written, which is after its last event; None where its clock does not count from 1970.

        PyTorch has that in the name; elsewhere it is the file's own time, which a copy makes later, never earlier.
        """
        start = self.inside.start_ns or 0
        named = self.item.time_ns if _WRITTEN.search(self.item.name) else None
        written = named or self.item.mtime_ns
        return written if _CALENDAR_NS < start <= written else None


def join_alike(runs: list[list[Entry]]) -> list[list[Entry]]:
    """The runs, with those of one file each joined that are ranks of one job by what they did."""
    alone = [run[0] for run in runs if len(run) == 1 and _says_nothing(run[0])]
    if not 1 < len(alone) <= FILES_ASKED:
        return runs
    jobs = [job for items in _by_folder(alone) for job in _jobs(_unknown(items)) if len(job) > 1]
    joined = {one.item.path for job in jobs for one in job}
    if not joined:
        return runs
    others = [run for run in runs if run[0].path not in joined]
    members = (sorted((one.item for one in job), key=lambda item: natural(item.name)) for job in jobs)
    return ordered([*others, *members])


def _says_nothing(item: Entry) -> bool:
    return item.rank is None and item.filesystem is None and not is_settled(item)


def _by_folder(items: list[Entry]) -> list[list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    for item in items:
        found[item.folder].append(item)
    return [items for items in found.values() if len(items) > 1]


def _unknown(items: list[Entry]) -> list[_Unknown]:
    """Those that do not say their rank either, and when they were recorded, by time."""
    insides = look_inside(items)
    found = [
        _Unknown(item, inside)
        for item in items
        if (inside := insides.get(item.path)) is not None and inside.rank is None and inside.start_ns
    ]
    return sorted(found, key=lambda one: one.inside.start_ns or 0)


def _jobs(unknown: list[_Unknown]) -> list[list[_Unknown]]:
    jobs: list[list[_Unknown]] = []
    running: list[list[_Unknown]] = []
    for one in unknown:
        # Recordings one after the other, hundreds in a folder of logs, are told apart without opening them.
        running = [job for job in running if not any(_is_over(other, one) for other in job)]
        fitting = (job for job in running if all(_are_ranks(other, one) for other in job))
        job = next(fitting, None)
        if job is None:
            jobs.append([one])
            running.append(jobs[-1])
        else:
            job.append(one)
    return jobs


def _is_over(earlier: _Unknown, later: _Unknown) -> bool:
    """Whether the earlier one was written before the later one, and with it all that come after, began."""
    begins, written = later.inside.start_ns or 0, earlier.written_ns
    return (
        written is not None
        and begins - (earlier.inside.start_ns or 0) > UNRANKED_GAP_NS
        and begins > written + UNRANKED_GAP_NS
    )


def _are_ranks(earlier: _Unknown, later: _Unknown) -> bool:
    return (
        earlier.program.is_alike(later.program)
        and _overlap(earlier, later)
        and all(
            _exchanges(one.item.path, one.item.size, one.item.mtime_ns) for one in (earlier, later)
        )
    )  # fmt: skip


def _overlap(earlier: _Unknown, later: _Unknown) -> bool:
    first, second = earlier.inside.start_ns or 0, later.inside.start_ns or 0
    if second - first <= UNRANKED_GAP_NS:
        return True
    end = last_event_ns(earlier.item, earlier.inside)
    return end is not None and second <= end


@lru_cache(maxsize=4096)  # folders are looked at again and again while a page is open
def _program(path: str, _size: int, _mtime_ns: int) -> _Program:
    try:
        pieces = _OP.findall(Source(path).head(HEAD_BYTES))
    except Exception:  # whatever is wrong with the file is reported when it is read
        pieces = []
    names = (_NAME.search(piece) for piece in pieces)
    processes = (_PROCESS.search(piece) for piece in pieces)
    return _Program(
        tuple(found[1] for found in names if found), frozenset(found[1] for found in processes if found)
    )


@lru_cache(maxsize=4096)
def _exchanges(path: str, _size: int, _mtime_ns: int) -> bool:
    """Whether anything in the file is sent to other ranks."""
    read, before = 0, b""
    try:
        for piece in Source(path).pieces(HEAD_BYTES):
            if _EXCHANGE.search(before[-32:] + piece):
                return True
            read, before = read + len(piece), piece
            if read > MOST_SEARCHED:
                break
    except Exception:  # as above
        pass
    return False
