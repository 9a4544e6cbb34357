"""What survives `kill -9`: steps, annotations and telemetry, kept in a file from the moment they happen.

The frameworks write when a window ends. Until then the ring is all there is, and once the real files are written it goes away.
It has a bounded size and keeps the newest. Nothing here takes a lock: a signal handler may come at any moment, and write too.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any

from stepscope.capture.process import active, clock
from stepscope.capture.process.troubles import Trouble, Troubles, explain, trouble
from stepscope.capture.ring.file import Copier, RingFile
from stepscope.ring_layout import (
    ALIVE,
    AREA,
    BEGINS,
    ENDING,
    FACTS,
    HEADER,
    HEADER_BYTES,
    LAST_THREAD,
    MAGIC,
    NAME_AT,
    NAMES,
    NO_NAME,
    STEPS,
    TELEMETRY,
    TEXT,
    THREAD,
    THREAD_AT,
    TIME_BITS,
    VERSION,
    WORD_BYTES,
    Area,
    areas,
)

EVENT_WORDS = 1 << 23  # 64 MiB
_AT_ONCE = 1 << 17
# A thread may have taken a number and not written yet when the copier comes by.
_LATE = 256
_PAGE = 4096
_LONGEST_NS = 1 << TIME_BITS


class _Texts:
    """An area of texts; they are numbered from 1, and with `wraps` the newest take the place of the oldest."""

    def __init__(self, file: RingFile, area: Area, *, wraps: bool) -> None:
        self._file = file
        self._area = area
        self._wraps = wraps
        self._count = itertools.count(1)

    def put(self, text: bytes) -> int:
        """Its number; 0 where there is no room."""
        number = next(self._count)
        text = text[: self._area.slot - TEXT.size]
        if number > self._area.slots and not self._wraps:
            return 0
        offset = self._area.offset + (number - 1) % self._area.slots * self._area.slot
        self._file.make_ready(offset, self._area.slot)
        place = self._file.bytes
        TEXT.pack_into(place, offset, 0, len(text), zlib.crc32(text))
        place[offset + TEXT.size : offset + TEXT.size + len(text)] = text
        TEXT.pack_into(place, offset, number, len(text), zlib.crc32(text))
        self._file.changed(offset, TEXT.size + len(text))
        return number


class Ring:
    """One recording's. `id` is in the sidecars of its windows, so that a reader knows what was written after all."""

    def __init__(self, file: RingFile, event_words: int, failed: Callable[[BaseException], None]) -> None:
        self.id = secrets.token_hex(8)
        self._file = file
        self._failed = failed
        self._known: dict[str, Any] = {"recording": self.id}
        self._facts = _Texts(file, FACTS, wraps=True)
        self._texts = _Texts(file, NAMES, wraps=False)
        self._telemetry = _Texts(file, TELEMETRY, wraps=True)
        self._names: dict[tuple[str, str], int] = {}
        self._codes: dict[tuple[str, str, int], int] = {}
        self._threads: dict[int, int] = {}
        self._thread_names: dict[int, str] = {}
        *_, self._events = areas(event_words)
        self._write_header(areas(event_words))
        file.make_ready(STEPS.offset, STEPS.size)
        view = memoryview(file.bytes)
        self.moments = view[STEPS.offset : STEPS.end].cast("q")
        self._words = view[self._events.offset : self._events.end].cast("q")
        self._last_slot = event_words - 1
        self._base_ns = 0
        self._count = itertools.count()
        self._ready = self._used = 0
        self._laps = 0
        self._copied = 0
        self._copied_steps = b""
        self._grow(0)
        self._copier: Copier | None = None

    def _write_header(self, found: tuple[Area, ...]) -> None:
        now = clock.both()
        self._file.make_ready(0, HEADER_BYTES)
        place, at = self._file.bytes, HEADER.size
        for area in found:
            AREA.pack_into(place, at, area.offset, area.slot, area.slots)
            at += AREA.size
        HEADER.pack_into(
            place, 0, MAGIC, VERSION, len(found), os.getpid(), now["perf_counter_ns"], now["unix_ns"]
        )
        self._file.changed(0, HEADER_BYTES)

    @property
    def path(self) -> Path:
        """Its file."""
        return self._file.path

    @property
    def holds_window(self) -> bool:
        """Whether a window was begun of which nothing is known to be written."""
        return self._known.get("window") is not None

    # ---- while a window is open

    def begin(self, kind: str, name: str, now_ns: int) -> int:
        """Something begins: what `end` wants to know of it."""
        try:
            code = self._codes.get((kind, name, get_ident())) or self._code(kind, name, get_ident())
            number = next(self._count)
            if number >= self._ready:
                self._grow(number)
            self._words[number & self._last_slot] = now_ns - self._base_ns + code
            return code - BEGINS
        except Exception as error:
            return self._give_up(error)

    def end(self, code: int, now_ns: int) -> None:
        """It ends."""
        try:
            number = next(self._count)
            if number >= self._ready:
                self._grow(number)
            self._words[number & self._last_slot] = now_ns - self._base_ns + code
        except Exception as error:
            self._give_up(error)

    def seen(self, kind: str, name: str, thread: int, start_ns: int, end_ns: int) -> None:
        """Something that another thread did."""
        try:
            code = self._codes.get((kind, name, thread)) or self._code(kind, name, thread)
            if start_ns >= self._base_ns:
                self._words[self._next_slot()] = start_ns - self._base_ns + code
                self._words[self._next_slot()] = end_ns - self._base_ns + code - BEGINS
        except Exception as error:
            self._give_up(error)

    # ---- now and then

    def open_window(self, base_ns: int, **facts: Any) -> None:
        """Events from now on are of this window; those of the one before are forgotten, since their times count from another moment."""
        try:
            used = self._used if self._laps else min(next(self._count), self._used)
            first = self._events.offset
            self._file.bytes[first : first + used * WORD_BYTES] = bytes(used * WORD_BYTES)
            self._file.changed(first, used * WORD_BYTES)
            self._base_ns, self._laps, self._copied = base_ns, 0, 0
            self._count = itertools.count()
            self._ready = min(self._used, self._last_slot + 1)
            self._numbered(get_ident())
            self.tell(**facts, base_ns=base_ns, laps=0)
        except Exception as error:
            self._give_up(error)

    def look(self, telemetry: dict[str, Any] | None) -> None:
        """What telemetry saw; and which threads there are by now."""
        try:
            if telemetry is not None:
                self._telemetry.put(json.dumps(telemetry).encode())
            for thread in threading.enumerate():
                number = self._threads.get(thread.ident or 0)
                if number is not None and self._thread_names.get(number) != thread.name:
                    self._thread_names[number] = thread.name
                    self._texts.put(_cut(f"{THREAD}{number} {thread.name}"))
            if time.perf_counter_ns() - self._base_ns > _LONGEST_NS - 10**12:
                raise OverflowError("the window is open for too long")
        except Exception as error:
            self._give_up(error)

    def tell(self, **facts: Any) -> None:
        """More that is to be known of the recording, or in place of what was known."""
        self._known |= facts
        try:
            text = json.dumps(self._known, default=str).encode()
            if len(text) > FACTS.slot - TEXT.size:
                text = json.dumps(self._known | {"command": []}, default=str).encode()
            self._facts.put(text)
        except Exception as error:
            self._give_up(error)

    def watch(self, look: Callable[[], None]) -> None:
        """Call this several times a second from a thread of our own, and bring to the file what is not there yet."""

        def tick() -> None:
            look()
            if not self._file.is_mapped:
                self.copy()

        self._copier = Copier(tick, self._failed)

    def copy(self) -> None:
        """Bring to the file what is not there yet."""
        code = self._code(ALIVE, "", 0) - BEGINS
        number = next(self._count)
        if number >= self._ready:
            self._grow(number)
        self._words[number & self._last_slot] = time.perf_counter_ns() - self._base_ns + code
        first, self._copied = self._copied, max(0, number - _LATE)
        for low, high in self._between(min(first, number), number):
            self._file.changed(self._events.offset + low * WORD_BYTES, (high - low + 1) * WORD_BYTES)
        steps = bytes(self._file.bytes[STEPS.offset : STEPS.end])
        for at in range(0, STEPS.size, _PAGE):
            if steps[at : at + _PAGE] != self._copied_steps[at : at + _PAGE]:
                self._file.changed(STEPS.offset + at, _PAGE)
        self._copied_steps = steps
        self._file.copy()

    def _between(self, first: int, last: int) -> list[tuple[int, int]]:
        """The slots of these numbers, both included, as ranges."""
        if last - first >= self._last_slot:
            return [(0, self._last_slot)]
        low, high = first & self._last_slot, last & self._last_slot
        return [(low, high)] if low <= high else [(low, self._last_slot), (0, high)]

    def keep(self) -> None:
        """The real files could not be written: this one stays."""
        self._end()
        if not self._file.is_mapped:
            self.copy()
        self._file.close()

    def remove(self) -> None:
        """It is not needed any more."""
        self._end()
        self._file.remove()

    def _end(self) -> None:
        if self._copier is not None:
            self._copier.stop()

    def _give_up(self, error: BaseException) -> int:
        """Go on without: nothing that fails here is worth a warning."""
        if active.ring is self:
            active.ring = None
        self._failed(error)
        return 0

    def _code(self, kind: str, name: str, thread: int) -> int:
        """The word of an event that begins, less its time."""
        number = self._names.get((kind, name)) or self._texts.put(_cut(kind + name))
        code = BEGINS + ((number or NO_NAME) << NAME_AT) + (self._numbered(thread) << THREAD_AT)
        if number:  # names that are made anew for each step would fill the memory
            self._names[kind, name] = number
            self._codes[kind, name, thread] = code
        return code

    def _numbered(self, thread: int) -> int:
        return self._threads.setdefault(thread, min(len(self._threads) + 1, LAST_THREAD)) if thread else 0

    def _next_slot(self) -> int:
        number = next(self._count)
        if number >= self._ready:
            self._grow(number)
        return number & self._last_slot

    def _grow(self, number: int) -> None:
        """Have room for the next events. A disk that has none for more makes the ring smaller, not the job stop."""
        slots = self._last_slot + 1
        if number < slots and self._used < slots:
            wanted = min(number + _AT_ONCE, slots)
            try:
                self._file.make_ready(self._events.offset, wanted * WORD_BYTES)
                self._used = self._ready = wanted
            except OSError as error:
                self._failed(error)
                if self._used == 0:
                    raise
                # As much of it as is a power of two: slots are found by the lowest bits.
                slots = 1 << (self._used.bit_length() - 1)
                self._last_slot = slots - 1
        if number >= slots or self._used >= slots:
            self._laps = number // slots
            self._ready = (self._laps + 1) * slots
            if self._laps:
                self.tell(laps=self._laps, slots=slots)


def _cut(text: str) -> bytes:
    """As much as a slot holds: the beginning and the end identify it best."""
    found = text.encode("utf-8", "replace")
    most = NAMES.slot - TEXT.size
    return found if len(found) <= most else found[: most // 3] + b"..." + found[most // 3 + 3 - most :]


def open_ring(folder: Path, worker: str, troubles: Troubles, event_words: int = EVENT_WORDS) -> Ring | None:
    """A ring in this folder; None, with a note, where none can be."""

    def failed(error: BaseException) -> None:
        troubles.note(_unsafe(error))

    file = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        *_, events = areas(event_words)
        path = folder / f"{worker}.{time.time_ns()}{ENDING}"
        file = RingFile(path, events.end)
        return Ring(file, event_words, failed)
    except Exception as error:
        failed(error)
        if file is not None:
            file.remove()
        return None


def _unsafe(error: BaseException) -> Trouble:
    return trouble(
        "ring-failed",
        f"What is recorded is kept in memory until it is written: {explain('', error).detail.removeprefix(': ')}",
    )
