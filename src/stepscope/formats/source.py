"""The bytes of one file, wherever it is: mapped if it is plain and local, else unpacked piece by piece."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from stepscope.errors import UnreadableFile, no_such_path
from stepscope.formats.gzip_stream import GZIP_MAGIC, READ_BYTES, Unpacker
from stepscope.trace.problems import Problems, problem

PIECE_BYTES = 1 << 24
_NO_ACCESS = ("credential", "permission", "forbidden", "denied", "unauthorized", "token", "401", "403")
_CREDENTIALS = {
    "s3": "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "Run: gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS",
    "hdfs": "Run: kinit",
}


class Source:
    """One file. `problems` collects what was wrong with the packing, `bytes_read` counts bytes as stored."""

    def __init__(self, path: str, filesystem: Any = None) -> None:
        self.path = path
        self.filesystem = filesystem
        self.problems = Problems()
        self.bytes_read = 0
        self._begins_packed = False

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return self.path.replace("\\", "/").rsplit("/", 1)[-1]

    def size(self) -> int:
        """Bytes as stored."""
        with _in_words(self.path):
            if self.filesystem is None:
                return Path(self.path).stat().st_size
            return int(self.filesystem.size(self.path) or 0)

    def is_packed(self) -> bool:
        """Whether the content is gzipped, whatever the name says."""
        with self._open() as file:
            return file.read(2) == GZIP_MAGIC

    def head(self, count: int = 1 << 16) -> bytes:
        """The first bytes of the content, unpacked; problems met here are not noted."""
        return self.opening(count)[0]

    def opening(self, count: int) -> tuple[bytes, bool]:
        """The same, and whether the content is gzipped: the file is opened once for both."""
        source, found = Source(self.path, self.filesystem), bytearray()
        for piece in source.pieces(count):
            found += piece
            if len(found) >= count:
                break
        return bytes(found[:count]), source._begins_packed

    def content(self) -> mmap.mmap | bytes | bytearray:
        """All of the content, unpacked: a read-only map where the file is plain and local."""
        if self.filesystem is None and self.size() > 0 and not self.is_packed():
            with self._open() as file, _in_words(self.path):
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
                self._begins_packed = first[:2] == GZIP_MAGIC
                if self._begins_packed:
                    yield from self._unpacked(file, first, size)
                else:
                    yield from self._plain(file, first, size)
            except OSError as error:
                self.problems.add(
                    problem("unreadable", f"Reading stopped after {self.bytes_read:,} bytes: {error}.")
                )

    def _plain(self, file: IO[bytes], first: bytes, size: int) -> Iterator[bytes]:
        data = first
        while data:
            self.bytes_read += len(data)
            yield data
            data = file.read(size)

    def _unpacked(self, file: IO[bytes], data: bytes, size: int) -> Iterator[bytes]:
        unpacker = Unpacker(lambda: cast("IO[bytes]", self._open()), self.problems.add)
        for piece in unpacker.pieces(file, data, size):
            self.bytes_read = unpacker.packed
            yield piece
        self.bytes_read = unpacker.packed

    def _open(self) -> AbstractContextManager[IO[bytes]]:
        if self.filesystem is not None:
            with _remotely(self.path):
                return cast("AbstractContextManager[IO[bytes]]", self.filesystem.open(self.path, "rb"))
        file = Path(self.path)
        with _in_words(self.path):
            if not stat.S_ISREG(mode := file.stat().st_mode) and not stat.S_ISDIR(mode):
                # A pipe would wait for a writer, and a device has no end.
                raise UnreadableFile(
                    f"{self.path} is a pipe or a device, not a file", fix="Copy it to a file first."
                )
            return file.open("rb")


@contextmanager
def _remotely(path: str) -> Iterator[None]:
    """Every filesystem has errors of its own."""
    try:
        yield
    except FileNotFoundError:
        raise UnreadableFile(no_such_path(path)) from None
    except Exception as error:
        what = f"Cannot open {path}: {type(error).__name__}: {error}"
        raise UnreadableFile(what, fix=access_hint(path, error)) from None


def access_hint(url: str, error: Exception) -> str | None:
    """What to do where credentials are missing or do not suffice; None for other errors."""
    told = f"{type(error).__name__} {error}".lower()
    if not any(word in told for word in _NO_ACCESS):
        return None
    how = _CREDENTIALS.get(url.split("://", 1)[0], "Give the credentials that fsspec's filesystem wants")
    return f"{how}, here and on the machines that read the files."


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """What the system refuses, in words for the user."""
    try:
        yield
    except FileNotFoundError:
        raise UnreadableFile(no_such_path(path)) from None
    except IsADirectoryError:
        raise UnreadableFile(f"This is a folder, not a file: {path}") from None
    except PermissionError:
        fix = f"Try: chmod u+r '{path}', or run as its owner."
        raise UnreadableFile(f"No permission to read {path}", fix=fix) from None
    except OSError as error:
        raise UnreadableFile(f"Cannot open {path}: {error.strerror or error}") from None
