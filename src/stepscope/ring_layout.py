"""The layout of a ring file: what a recording keeps on the disk until its real files are written.

A header, then areas of slots of one size each. Everything is little-endian. An event is one word, which the machine writes at once
or not at all; texts get their number last and have a checksum. `docs/capture/ring.md` describes it for others.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"\x89SSRING\n"
VERSION = 1
ENDING = ".stepscope.ring"
# magic, version, number of areas, pid, `perf_counter` and wall clock of one moment
HEADER = struct.Struct("<8sIIQqq")
# offset, bytes of a slot, slots
AREA = struct.Struct("<QII")
HEADER_BYTES = 4096

# number, bytes, CRC-32
TEXT = struct.Struct("<QII")
WORD_BYTES = 8

# An event, from the lowest bit on: nanoseconds since the window opened, thread, name, and whether it begins or ends.
TIME_BITS, THREAD_BITS, NAME_BITS = 45, 4, 13
THREAD_AT = TIME_BITS
NAME_AT = THREAD_AT + THREAD_BITS
BEGINS = 1 << (NAME_AT + NAME_BITS)
NO_NAME = (1 << NAME_BITS) - 1
# Threads are numbered as they come; those that come late share the last number.
LAST_THREAD = (1 << THREAD_BITS) - 1

# The first letter of a name says what it is the name of.
ANNOTATION, OP, PYTHON, STEP, ALIVE, THREAD = "a", "o", "p", "s", "l", "t"
KINDS = {ANNOTATION: "annotation", OP: "op", PYTHON: "python", STEP: "annotation"}


@dataclass(frozen=True)
class Area:
    """Slots in a row."""

    offset: int
    slot: int
    slots: int

    @property
    def size(self) -> int:
        """Bytes of all slots."""
        return self.slot * self.slots

    @property
    def end(self) -> int:
        """Where the next area may begin."""
        return self.offset + self.size


# Facts of the process and of its window, as JSON: the newest counts.
FACTS = Area(HEADER_BYTES, 16 << 10, 4)
# Of events and threads, each once; they are numbered from 1.
NAMES = Area(FACTS.end, 256, (1 << NAME_BITS) - 2)
# What telemetry saw, a JSON object a sample.
TELEMETRY = Area(NAMES.end, 4096, 2048)
# When steps ended, by `perf_counter`: step n in slot n % slots.
STEPS = Area((TELEMETRY.end + 4095) // 4096 * 4096, WORD_BYTES, 16384)
# The last one: the file grows with it.
EVENTS_AT = STEPS.end


def areas(event_words: int) -> tuple[Area, ...]:
    """All areas, with room for this number of events, a power of two."""
    return FACTS, NAMES, TELEMETRY, STEPS, Area(EVENTS_AT, WORD_BYTES, event_words)
