"""Drives the scanner over a file: a mapped one in parallel pieces, a packed or remote one in windows."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Queue
from threading import Thread

from stepscope.errors import UnreadableFile
from stepscope.formats.json_events import Gathering, JsonEvents, new_scanner
from stepscope.formats.json_slow import scan_slow
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.native import events as native
from stepscope.trace.json_text import repaired_json
from stepscope.trace.problems import Problem

BYTES_PER_EVENT = 220  # a guess on the low side: room for more events than there are costs nothing
WINDOW_BYTES = 1 << 25
PIECE_BYTES = 1 << 23
SALVAGES = 100
# Where an event may begin: after another one. Only a guess; it is proved by the piece before it.
_BOUNDARY = re.compile(rb'\}\s*,\s*(\{\s*"(?:ph|cat|name|ts|pid|tid|args|dur)"\s*:)')

Bytes = mmap.mmap | bytes | bytearray


def scan(source: Source, progress: Progress) -> JsonEvents:
    """All events of the file."""
    if not native.COMPILED:
        found = scan_slow(bytes(source.content()))
        if found is not None and not len(source.problems):
            progress(source.size())
            return found
        source = Source(source.path, source.filesystem)
    if source.filesystem is None and not source.is_packed() and source.size() > 0:
        gathering = _scan_mapped(source, progress)
    else:
        gathering = _scan_windows(source, progress)
    for problem in source.problems.all():
        gathering.problems.add(problem)
    return gathering.result()


@dataclass
class _Piece:
    """A stretch of a mapped file, its scanner, and where it came to an end."""

    begin: int
    stop: int
    scanner: native.Scanner
    ended: int = native.MORE


def _scan_mapped(source: Source, progress: Progress) -> Gathering:
    content = source.content()
    gathering = Gathering()
    pieces = _pieces(content)

    def tell() -> None:
        progress(sum(piece.scanner.position() - piece.begin for piece in pieces))

    with ThreadPoolExecutor(len(pieces)) as pool:
        list(pool.map(lambda piece: _run_piece(piece, content, gathering, tell), pieces))
    _join_pieces(pieces, content, gathering)
    progress(len(content))
    return gathering


def _pieces(content: Bytes) -> list[_Piece]:
    """The file cut where events seem to begin, in about equal stretches, one per core."""
    size = len(content)
    wanted = max(1, min(os.cpu_count() or 1, 8, size // PIECE_BYTES)) if native.COMPILED else 1
    begins = [0]
    for number in range(1, wanted):
        found = _BOUNDARY.search(
            content, max(size * number // wanted, begins[-1] + 1), size * number // wanted + PIECE_BYTES // 4
        )
        if found:
            begins.append(found.start(1))
    stops = [*begins[1:], -1]
    return [
        _Piece(begin, stop, new_scanner(((stop if stop >= 0 else size) - begin) // BYTES_PER_EVENT))
        for begin, stop in zip(begins, stops, strict=True)
    ]


def _run_piece(piece: _Piece, content: Bytes, gathering: Gathering, tell: Callable[[], None]) -> None:
    piece.scanner.feed(content, piece.begin, piece.stop)
    if piece.begin:
        piece.scanner.begin_inside()
    piece.ended = _run(piece.scanner, content, gathering, tell)


def _join_pieces(pieces: list[_Piece], content: Bytes, gathering: Gathering) -> None:
    """Take the pieces in order. One that was entered at a wrong place is read again by the piece before it."""
    current = pieces[0]
    for piece in pieces[1:]:
        if current.ended == native.STOPPED and current.scanner.position() == piece.begin:
            gathering.add(current.scanner)
            current = piece
        elif current.ended == native.STOPPED:
            current.scanner.feed(content, current.scanner.position(), piece.stop)
            current.ended = _run(current.scanner, content, gathering)
    _end(current.scanner, current.ended, content, 0, gathering)


def _nothing() -> None:
    pass


def _run(
    scanner: native.Scanner, window: Bytes, gathering: Gathering, tell: Callable[[], None] = _nothing
) -> int:
    """Run until the window, the stretch or the document ends, and keep the members of the header."""
    while True:
        result = scanner.run()
        if result == native.HEADER:
            lo, hi = scanner.key_span()
            key = bytes(window[lo:hi]).decode(errors="replace")
            lo, hi = scanner.value_span()
            gathering.header[key] = repaired_json(bytes(window[lo:hi]))
        elif result == native.PAUSED:
            tell()
        else:
            return result


def _end(scanner: native.Scanner, ended: int, window: Bytes, base: int, gathering: Gathering) -> None:
    """The last scanner is done: take its events, and say so if the document was cut or goes on after its end."""
    for _ in range(SALVAGES):
        if ended != native.MORE or not scanner.is_inside_events() or not scanner.give_up():
            break
        ended = _run(scanner, window, gathering)
    if ended == native.NOT_JSON:
        raise UnreadableFile("The file is not JSON")
    gathering.add(scanner, base)
    if ended == native.MORE:
        gathering.problems.add(_cut(scanner, len(window), base))
    elif ended == native.DONE and bytes(window[scanner.position() :]).strip(b" \t\r\n\0"):
        gathering.problems.add(_trailing(base + scanner.position(), len(window) - scanner.position()))


def _cut(scanner: native.Scanner, size: int, base: int) -> Problem:
    at = base + scanner.position()
    lost = base + size - at
    detail = f"The file ends at byte {base + size:,} without closing its list of events"
    detail += (
        f"; the {lost:,} bytes from byte {at:,} on are part of an event and were left out."
        if lost
        else "; no part of an event was lost."
    )
    detail += " All complete events were kept."
    return Problem(
        "truncated",
        "The file is cut short",
        detail,
        "The job ended while it wrote, the disk was full, or a copy broke off. Copy or record it again.",
        "error",
    )


def _trailing(at: int, count: int) -> Problem:
    return Problem(
        "trailing-bytes",
        "Something follows the end of the trace",
        f"{count:,} bytes after byte {at:,} are not part of the trace and were not read.",
        "",
        "info",
    )


def _scan_windows(source: Source, progress: Progress) -> Gathering:
    gathering = Gathering()
    scanner = new_scanner(WINDOW_BYTES // BYTES_PER_EVENT)
    window = bytearray()
    base = 0
    ended = native.MORE
    for piece in _ahead(source):
        window += piece
        if len(window) < WINDOW_BYTES:
            continue
        scanner.feed(bytes(window), 0)
        ended = _run(scanner, window, gathering)
        progress(source.bytes_read)
        if ended != native.MORE:
            break
        done = scanner.position()
        base += done
        del window[:done]
    else:
        scanner.feed(bytes(window), 0)
        ended = _run(scanner, window, gathering)
    progress(source.bytes_read)
    _end(scanner, ended, window, base, gathering)
    return gathering


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
