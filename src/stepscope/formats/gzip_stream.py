"""Gzip that may be cut, damaged or hostile: every byte before the damage, and in words what is wrong."""

from __future__ import annotations

import zlib as careful
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import IO, Any

from stepscope.trace.problems import Problem, problem

quick: Any
try:
    quick = import_module("isal.isal_zlib")
except ImportError:  # no wheel for this machine: slower, but the same bytes
    quick = careful

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 1 << 18
STEP_BYTES = 1 << 14
# Real profiles shrink by 10 to 40; DEFLATE cannot exceed 1032. Past both limits it is a bomb, not a profile. An event can be as
# small as two bytes and takes fifty in the tables: this is how much memory a bomb gets.
BOMB_BYTES = 1 << 26
BOMB_RATIO = 400

Note = Callable[[Problem], None]


class Unpacker:
    """Unpacks one file. `packed` and `unpacked` count its bytes so far."""

    def __init__(self, reopen: Callable[[], IO[bytes]], note: Note) -> None:
        self.reopen = reopen
        self.note = note
        self.packed = 0
        self.unpacked = 0

    def pieces(self, file: IO[bytes], data: bytes, size: int) -> Iterator[bytes]:
        """The content in pieces of at most `size` bytes; `data` was read from the file already."""
        stream = quick.decompressobj(wbits=31)
        while data:
            self.packed += len(data)
            while data:
                try:
                    piece = stream.decompress(data, size)
                except quick.error as error:
                    yield from self._up_to_the_damage(size, str(error))
                    return
                self.unpacked += len(piece)
                if piece:
                    yield piece
                data = stream.unconsumed_tail
                used = self.packed - len(data) - len(stream.unused_data)
                if self.unpacked > max(BOMB_BYTES, BOMB_RATIO * used):
                    self.note(_bomb(self.unpacked))
                    return
                if stream.eof:
                    data = stream.unused_data
                    break
            if stream.eof:
                data = self._next_member(file, data)
                if data[:2] != GZIP_MAGIC:
                    if data:
                        self._damaged(
                            f"Something that is not gzip follows packed byte {self.packed - len(data):,}"
                        )
                    return
                self.packed -= len(data)  # counted again as the loop goes on
                stream = quick.decompressobj(wbits=31)
            else:
                data = file.read(READ_BYTES)
        self._damaged(f"The gzip stream ends too early, after {self.packed:,} packed bytes")

    def _next_member(self, file: IO[bytes], data: bytes) -> bytes:
        """What follows a gzip stream, without the zeros that fill the last block of a tape or disk."""
        data = data.lstrip(b"\0")
        while len(data) < 2:
            more = file.read(READ_BYTES)
            if not more:
                break
            self.packed += len(more)
            data = (data + more).lstrip(b"\0")
        return data

    def _up_to_the_damage(self, size: int, error: str) -> Iterator[bytes]:
        """Unpack again in steps that can be taken back, for what is between the last piece and the damage."""
        steps = _Steps()
        skip = self.unpacked
        with self.reopen() as file:
            while not steps.reason and (data := file.read(STEP_BYTES)):
                for piece in steps.take(data):
                    rest = piece[skip:]
                    skip -= len(piece) - len(rest)
                    self.unpacked += len(rest)
                    yield from (rest[at : at + size] for at in range(0, len(rest), size))
        self._damaged(f"The gzip stream is damaged at packed byte {steps.packed:,} ({steps.reason or error})")

    def _damaged(self, what: str) -> None:
        self.note(problem("damaged-gzip", f"{what}. The {self.unpacked:,} bytes before that were read."))


class _Steps:
    """Unpacks in ever smaller steps until the damage is met. `reason` says what it is, `packed` where."""

    def __init__(self) -> None:
        self.stream = careful.decompressobj(wbits=31)
        self.packed = 0
        self.reason = ""

    def take(self, data: bytes) -> Iterator[bytes]:
        """The content of the next packed bytes, as far as they are whole."""
        step = len(data)
        while data and not self.reason:
            before = self.stream.copy()
            try:
                piece = self.stream.decompress(data[:step])
            except careful.error as error:
                self.stream = before
                if step == 1:
                    self.reason = str(error).rsplit(": ", 1)[-1]
                step = max(1, step // 2)
                continue
            yield piece
            unused = self.stream.unused_data
            self.packed += min(step, len(data)) - len(unused)
            data = unused + data[step:]
            if self.stream.eof:
                padding = len(data) - len(data.lstrip(b"\0"))
                self.packed += padding
                data = data[padding:]
                self.stream = careful.decompressobj(wbits=31)


def _bomb(size: int) -> Problem:
    return problem(
        "gzip-bomb",
        f"It expands to more than {BOMB_RATIO} times its size; reading stopped after {size:,} bytes.",
    )
