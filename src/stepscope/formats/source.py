"""The bytes of one file, wherever it lies: mapped if it is plain and local, else unpacked piece by piece."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

from stepscope.errors import UnreadableFile
from stepscope.trace.problems import Problem, Problems

zlib: Any
try:
    zlib = import_module("isal.isal_zlib")
except ImportError:  # no wheel for this machine: slower, but the same bytes
    zlib = import_module("zlib")

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 1 << 18
PIECE_BYTES = 1 << 24
# Real profiles shrink by 10 to 40; DEFLATE cannot exceed 1032. Past both limits it is a bomb, not a profile.
BOMB_BYTES = 1 << 28
BOMB_RATIO = 400


class Source:
    """One file. `problems` collects what was wrong with the packing: a cut or damaged gzip stream, a bomb."""

    def __init__(self, path: str, filesystem: Any = None) -> None:
        self.path = path
        self.filesystem = filesystem
        self.problems = Problems()
        self.bytes_read = 0

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return self.path.replace("\\", "/").rsplit("/", 1)[-1]

    def size(self) -> int:
        """Bytes as stored."""
        if self.filesystem is None:
            return Path(self.path).stat().st_size
        return int(self.filesystem.size(self.path) or 0)

    def is_packed(self) -> bool:
        """Whether the content is gzipped, whatever the name says."""
        with self._open() as file:
            return file.read(2) == GZIP_MAGIC

    def head(self, count: int = 1 << 16) -> bytes:
        """The first bytes of the content, unpacked; problems met here are not noted."""
        quiet = Source(self.path, self.filesystem)
        found = bytearray()
        for piece in quiet.pieces(count):
            found += piece
            if len(found) >= count:
                break
        return bytes(found[:count])

    def content(self) -> mmap.mmap | bytes | bytearray:
        """All of the content, unpacked: a read-only map where the file is plain and local."""
        if self.filesystem is None and self.size() > 0 and not self.is_packed():
            with self._open() as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        found = bytearray()
        for piece in self.pieces():
            found += piece
        return found

    def pieces(self, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """The content in order, unpacked, in pieces of at most `size` bytes. Damage ends it and becomes a problem."""
        with self._open() as file:
            try:
                first = file.read(min(size, READ_BYTES))
                if first[:2] == GZIP_MAGIC:
                    yield from self._unpacked(file, first, size)
                else:
                    yield from self._plain(file, first, size)
            except OSError as error:
                self.problems.add(
                    Problem(
                        "unreadable",
                        "The file could not be read to its end",
                        f"Reading stopped after {self.bytes_read:,} bytes: {error}.",
                        "Copy the file again.",
                        "error",
                    )
                )

    def _plain(self, file: IO[bytes], first: bytes, size: int) -> Iterator[bytes]:
        data = first
        while data:
            self.bytes_read += len(data)
            yield data
            data = file.read(size)

    def _unpacked(self, file: IO[bytes], data: bytes, size: int) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(wbits=31)
        out = 0
        while True:
            self.bytes_read += len(data)
            while data:
                try:
                    piece = unpacker.decompress(data, size)
                except zlib.error as error:
                    self._damaged(
                        f"The gzip stream is damaged near packed byte {self.bytes_read:,} ({error})", out
                    )
                    return
                out += len(piece)
                if piece:
                    yield piece
                if out > BOMB_BYTES and out > BOMB_RATIO * self.bytes_read:
                    self._damaged(
                        f"It unpacks to more than {BOMB_RATIO} times its size, as no profile does", out
                    )
                    return
                data = unpacker.unconsumed_tail
                if unpacker.eof:
                    data = unpacker.unused_data.lstrip(b"\0")
                    if data[:2] != GZIP_MAGIC:
                        if data or file.read(1):
                            self._damaged(
                                f"Something that is not gzip follows packed byte {self.bytes_read - len(data):,}",
                                out,
                            )
                        return
                    unpacker = zlib.decompressobj(wbits=31)
            data = file.read(READ_BYTES)
            if not data:
                self._damaged(f"The gzip stream ends too early, after {self.bytes_read:,} packed bytes", out)
                return

    def _damaged(self, what: str, out: int) -> None:
        detail = f"{what}. The {out:,} bytes before that were read."
        self.problems.add(
            Problem(
                "damaged-gzip",
                "The packed file is cut or damaged",
                detail,
                "Copy or record the file again.",
                "error",
            )
        )

    def _open(self) -> AbstractContextManager[IO[bytes]]:
        try:
            if self.filesystem is None:
                return Path(self.path).open("rb")
            return cast("AbstractContextManager[IO[bytes]]", self.filesystem.open(self.path, "rb"))
        except FileNotFoundError:
            raise UnreadableFile(f"No such file: {self.path}") from None
        except IsADirectoryError:
            raise UnreadableFile(f"This is a folder, not a file: {self.path}") from None
        except PermissionError:
            raise UnreadableFile(
                f"No permission to read {self.path}",
                fix=f"Try: chmod u+r '{self.path}', or run as its owner.",
            ) from None
        except OSError as error:
            raise UnreadableFile(f"Cannot open {self.path}: {error.strerror or error}") from None
