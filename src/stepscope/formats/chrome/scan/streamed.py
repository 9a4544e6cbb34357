"""Trace JSON that comes piece by piece, packed or from afar: one scanner looks at one window after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from queue import Queue
from threading import Thread

from stepscope.errors import UnreadableFile
from stepscope.formats.chrome.scan.columns import Gathering, new_scanner
from stepscope.formats.chrome.scan.driver import run, salvage
from stepscope.formats.chrome.scan.problems import cut, oversized, trailing
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.native.json import events as native

BYTES_PER_EVENT = 220  # a guess on the low side: room for more events than there are costs nothing
WINDOW_BYTES = 1 << 25
# Nothing in a trace is that long; a window that grew to this size without an end in sight is passed over.
LARGEST_WINDOW_BYTES = 1 << 28
_WHITE = b" \t\r\n\0"
_KEY = re.compile(rb'\s*,?\s*"([^"]{0,200})"\s*:')


def scan_windows(source: Source, progress: Progress) -> Gathering:
    """All events of the source."""
    windows = _Windows()
    for piece in _ahead(source):
        windows.take(piece)
        progress(source.bytes_read)
    windows.end()
    progress(source.bytes_read)
    if windows.ended == native.NOT_JSON:
        raise UnreadableFile(f"{source.path} is not JSON")
    return windows.gathering


class _Windows:
    """Joins pieces to windows that hold at least one whole event, if there is one of sane size."""

    def __init__(self) -> None:
        self.gathering = Gathering()
        self.scanner = new_scanner(WINDOW_BYTES // BYTES_PER_EVENT)
        self.ended = native.MORE
        self.base = 0  # where the window begins in the document
        self.parts: list[bytes] = []
        self.size = 0
        self.wanted = WINDOW_BYTES
        self.trailing_bytes = 0
        self.something_follows = False

    def take(self, piece: bytes) -> None:
        """Another piece; the scanner looks at it when there are enough of them."""
        if self.ended != native.MORE:
            self.trailing_bytes += len(piece)
            self.something_follows |= bool(piece.strip(_WHITE))
            return
        self.parts.append(piece)
        self.size += len(piece)
        if self.size >= self.wanted:
            window = self._look()
            self._keep(window, self.scanner.position())

    def end(self) -> None:
        """No more pieces: the last window is all that is left."""
        window = b"".join(self.parts)
        if self.ended == native.MORE:
            window = self._look()
            first = self.scanner.counts()["first_bad"]
            self.ended = salvage(self.scanner, self.ended, window, self.gathering.header, self.gathering)
            self._note_bad(first)
        self.gathering.add(self.scanner)
        at, size = self.base + self.scanner.position(), self.base + len(window) + self.trailing_bytes
        if self.ended == native.MORE:
            self.gathering.problems.add(cut(size, at))
        elif self.something_follows or window[self.scanner.position() :].strip(_WHITE):
            self.gathering.problems.add(trailing(at, size - at))

    def _look(self) -> bytes:
        """Let the scanner run over what has come so far."""
        window = b"".join(self.parts)
        self.scanner.feed(window, 0)
        first = self.scanner.counts()["first_bad"]
        self.ended = run(self.scanner, window, self.gathering.header, self.gathering)
        self._note_bad(first)
        return window

    def _note_bad(self, first_before: int) -> None:
        """The scanner counts places from the beginning of its window."""
        first = self.scanner.counts()["first_bad"]
        if first_before < 0 <= first:
            self.gathering.note_bad(self.base + first)

    def _keep(self, window: bytes, done: int) -> None:
        """What the scanner did not finish begins the next window; twice as long if it made no way at all."""
        if self.ended == native.MORE and len(window) - done >= LARGEST_WINDOW_BYTES:
            done = self._pass_over(window, done)
        if self.ended == native.MORE:
            self.base += done
            window = window[done:]
        self.parts = [window]
        self.size = len(window)
        self.wanted = max(WINDOW_BYTES, 2 * self.size)

    def _pass_over(self, window: bytes, done: int) -> int:
        """Nothing ends in this window: give up what begins there, or all of it."""
        if self.scanner.is_inside_events():
            first = self.scanner.counts()["first_bad"]
            if self.scanner.give_up():
                self._note_bad(first)
                return self.scanner.position()
        elif key := _KEY.match(window, done):
            name = key[1].decode(errors="replace")
            self.gathering.header[name] = None
            self.gathering.problems.add(oversized(name, LARGEST_WINDOW_BYTES))
        self.gathering.pass_over(self.base + done, len(window) - done)
        return len(window)


def _ahead(source: Source) -> Iterator[bytes]:
    """The pieces of the source, unpacked by another thread while this one scans."""
    queue: Queue[bytes | BaseException | None] = Queue(maxsize=2)
    stopped = False

    def unpack() -> None:
        try:
            for piece in source.pieces():
                if stopped:
                    return
                queue.put(piece)
            queue.put(None)
        except BaseException as error:
            queue.put(error)

    thread = Thread(target=unpack, daemon=True)
    thread.start()
    try:
        while True:
            piece = queue.get()
            if isinstance(piece, BaseException):
                raise piece
            if piece is None:
                return
            yield piece
    finally:
        stopped = True
        while thread.is_alive():
            while not queue.empty():
                queue.get_nowait()
            thread.join(0.01)
