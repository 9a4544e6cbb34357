"""TFRecord files: length, checksum of the length, data, checksum of the data, and so on to the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.formats.tf1.detect import HEADER_BYTES, masked, starts_record
from stepscope.native.crc32c import crc32c
from stepscope.trace.problems import Problem, Problems, problem

FOOTER_BYTES = 4
CHECKED_BYTES = 1 << 26

# A length below 4 GiB, its checksum, and the first byte of a TensorBoard event (its time comes first).
_EVENT_AHEAD = re.compile(rb"(?=....\0\0\0\0....\x09)", re.DOTALL)
_HEADERS_TRIED = 10_000


@dataclass(frozen=True)
class Record:
    """The data of one record; of the last one in a file that is cut, what is left of it."""

    data: memoryview
    whole: bool = True


@dataclass
class Records:
    """The records of a file. Those with a wrong checksum are given too; damage is counted in `problems`."""

    content: memoryview
    problems: Problems
    count: int = 0

    def __iter__(self) -> Iterator[Record]:
        checks = len(self.content) <= CHECKED_BYTES
        if not checks:
            self.problems.add(_unchecked(len(self.content)))
        at = 0
        while at < len(self.content):
            stop = self._stop(at)
            if stop is None:
                after = self._next_after_damage(at)
                if after == len(self.content) and starts_record(self.content, at):
                    yield Record(self.content[at + HEADER_BYTES :], whole=False)
                at = after
                continue
            data = self.content[at + HEADER_BYTES : stop - FOOTER_BYTES]
            stored = int.from_bytes(self.content[stop - FOOTER_BYTES : stop], "little")
            if not starts_record(self.content, at) or (checks and masked(crc32c(data)) != stored):
                self.problems.add(_mismatch(at))
            self.count += 1
            yield Record(data)
            at = stop

    def _stop(self, at: int) -> int | None:
        """Where the record ends, or None if no whole record can be there."""
        if len(self.content) - at < HEADER_BYTES + FOOTER_BYTES:
            return None
        size = int.from_bytes(self.content[at : at + 8], "little")
        stop = at + HEADER_BYTES + size + FOOTER_BYTES
        if stop > len(self.content):
            return None
        # A wrong length is believed only if it leads to the next record or to the end.
        if starts_record(self.content, at) or stop == len(self.content) or starts_record(self.content, stop):
            return stop
        return None

    def _next_after_damage(self, at: int) -> int:
        """Where to go on: at the next record, or at the end. Notes what is lost."""
        found = len(self.content)
        for tried, match in enumerate(_EVENT_AHEAD.finditer(self.content, at + 1)):
            if tried == _HEADERS_TRIED:
                break
            if starts_record(self.content, match.start()):
                found = match.start()
                break
        if found < len(self.content):
            self.problems.add(_lost(at, found))
        else:
            self.problems.add(_cut(at, len(self.content), self.count))
        return found


def _cut(at: int, size: int, count: int) -> Problem:
    return problem(
        "truncated",
        f"Its last {size - at:,} bytes, from byte {at:,} on, are not a complete record; {count:,} records before them were read.",
    )


def _lost(at: int, found: int) -> Problem:
    return problem(
        "lost-records",
        f"{{count}} bytes, from byte {at:,} on, are not a record and were skipped.",
        count=found - at,
    )


def _mismatch(at: int) -> Problem:
    return problem(
        "crc-mismatch", f"{{count}} records do not match their checksum, the first at byte {at:,}."
    )


def _unchecked(size: int) -> Problem:
    return problem(
        "crc-unchecked",
        f"The file has {size:,} bytes; checksums are verified in files of up to {CHECKED_BYTES:,} bytes.",
    )
