"""Trace JSON as columns: a mapped file in parallel pieces, anything else in windows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

from stepscope.errors import UnreadableFile
from stepscope.formats.chrome.scan.columns import Gathering, JsonEvents, new_scanner
from stepscope.formats.chrome.scan.driver import Bytes, Header, run, salvage
from stepscope.formats.chrome.scan.interpreted import scan_slow
from stepscope.formats.chrome.scan.problems import cut, trailing
from stepscope.formats.chrome.scan.streamed import BYTES_PER_EVENT, scan_windows
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.lazy import dataclass
from stepscope.native.json import events as native

PIECE_BYTES = 1 << 23
# Where an event may begin: after another one. Only a guess; it is proved by the piece before it.
_BOUNDARY = re.compile(rb'\}\s*,\s*(\{\s*"(?:ph|cat|name|ts|pid|tid|args|dur)"\s*:)')


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
        gathering = scan_windows(source, progress)
    for problem in source.problems.all():
        gathering.problems.add(problem)
    return gathering.result()


@dataclass
class _Piece:
    """A section of a mapped file, its scanner, what it read beside events, and where it came to an end."""

    begin: int
    stop: int
    scanner: native.Scanner
    header: Header = field(default_factory=dict)
    ended: int = native.MORE


def _scan_mapped(source: Source, progress: Progress) -> Gathering:
    content = source.content()
    gathering = Gathering()
    pieces = _pieces(content)

    def tell() -> None:
        progress(sum(piece.scanner.position() - piece.begin for piece in pieces))

    with ThreadPoolExecutor(len(pieces)) as pool:
        list(pool.map(lambda piece: _run_piece(piece, content, gathering, tell), pieces))
    if pieces[0].ended == native.NOT_JSON:
        raise UnreadableFile(f"{source.path} is not JSON")
    last = _join_pieces(pieces, content, gathering)
    _end(last, content, gathering)
    progress(len(content))
    return gathering


def _pieces(content: Bytes) -> list[_Piece]:
    """The file cut where events seem to begin, in sections of about equal size, one per core."""
    size = len(content)
    wanted = max(1, min(os.cpu_count() or 1, 8, size // PIECE_BYTES)) if native.COMPILED else 1
    begins = [0]
    for number in range(1, wanted):
        about = size * number // wanted
        found = _BOUNDARY.search(content, max(about, begins[-1] + 1), about + PIECE_BYTES // 4)
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
    piece.ended = run(piece.scanner, content, piece.header, gathering, tell)


def _join_pieces(pieces: list[_Piece], content: Bytes, gathering: Gathering) -> _Piece:
    """Take the pieces in order. One that was entered at a wrong place is read again by the piece before it."""
    current = pieces[0]
    for piece in pieces[1:]:
        current.ended = salvage(current.scanner, current.ended, content, current.header, gathering)
        if current.ended == native.STOPPED and current.scanner.position() == piece.begin:
            _take(current, gathering)
            current = piece
        elif current.ended == native.STOPPED:
            current.scanner.feed(content, current.scanner.position(), piece.stop)
            current.ended = run(current.scanner, content, current.header, gathering)
        elif current.ended == native.MORE:
            place = current.scanner.position()
            gathering.pass_over(place, piece.begin - place)
            _take(current, gathering)
            current = piece
    return current


def _end(last: _Piece, content: Bytes, gathering: Gathering) -> None:
    """Take the last piece, and say so if the document was cut or goes on after its end."""
    last.ended = salvage(last.scanner, last.ended, content, last.header, gathering)
    _take(last, gathering)
    at, size = last.scanner.position(), len(content)
    if last.ended == native.MORE:
        gathering.problems.add(cut(size, at))
    elif last.ended == native.DONE and bytes(content[at:]).strip(b" \t\r\n\0"):
        gathering.problems.add(trailing(at, size - at))


def _take(piece: _Piece, gathering: Gathering) -> None:
    gathering.add(piece.scanner)
    gathering.header |= piece.header
    if (first := piece.scanner.counts()["first_bad"]) >= 0:
        gathering.note_bad(first)
