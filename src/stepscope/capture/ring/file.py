"""Where a ring is stored: mapped from its file where that is safe, else in memory and copied to the file several times a second.

A mapped page that the file system has no room for would end the job by SIGBUS, and so would a file server that goes away. So
only file systems are mapped that keep what `posix_fallocate` promised, and no page is touched before it was.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path

from stepscope.capture.process.guarded import guarded_thread

COPY_SECONDS = 0.25
# Not overlay: what lies below it may be one that needs new room each time a page is changed.
_KEEPING = ("ext2", "ext3", "ext4", "xfs", "tmpfs")
_CHUNK = 1 << 20


class RingFile:
    """The bytes of a ring, and its file. `is_ready` comes before bytes are changed, `changed` after it."""

    def __init__(self, path: Path, size: int, mapped: bool | None = None) -> None:
        self.path = path
        self._pid = os.getpid()
        self._is_mapped = _is_safe_to_map(path.parent) if mapped is None else mapped
        self._ready: set[int] = set()
        self._dirty: list[tuple[int, int]] = []
        self._has_failed = False
        self._flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(path, self._flags, 0o644)
        try:
            self.bytes = self._mapped(size) if self._is_mapped else mmap.mmap(-1, size)
        except BaseException:
            self.remove()
            raise

    def _mapped(self, size: int) -> mmap.mmap:
        """Python maps no more than the file has; cut again, it is as long as what is used of it."""
        os.ftruncate(self._file, size)
        mapped = mmap.mmap(self._file, size)
        os.ftruncate(self._file, 0)
        return mapped

    @property
    def is_mapped(self) -> bool:
        """Whether what is written is in the file at once."""
        return self._is_mapped

    def make_ready(self, offset: int, size: int) -> None:
        """Have the disk keep room for these bytes; OSError where it has none."""
        if not self._is_mapped:
            return
        for chunk in range(offset // _CHUNK, (offset + size - 1) // _CHUNK + 1):
            if chunk not in self._ready:
                start = chunk * _CHUNK
                os.posix_fallocate(self._file, start, min(_CHUNK, len(self.bytes) - start))
                self._ready.add(chunk)

    def changed(self, offset: int, size: int) -> None:
        """These bytes have to be copied."""
        if not self._is_mapped and not self._has_failed:
            self._dirty.append((offset, size))

    def copy(self) -> None:
        """Bring to the file what has changed; OSError where that fails."""
        dirty, self._dirty = self._dirty, []
        view = memoryview(self.bytes)
        try:
            for offset, size in dirty:
                while size > 0:
                    done = os.pwrite(self._file, view[offset : offset + size], offset)
                    offset, size = offset + done, size - done
        except OSError:
            self._has_failed = True
            raise

    def close(self) -> None:
        """The file may stay. What is mapped goes with the last who knows of it: a thread may be writing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """Close and delete it; only the process that made it does."""
        if self._pid == os.getpid():
            self.close()
            self.path.unlink(missing_ok=True)


class Copier:
    """Calls `copy` again and again from a thread of its own, until it fails or is stopped."""

    def __init__(self, copy: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        self._copy = copy
        self._done = threading.Event()
        self._thread = guarded_thread(self._run, "stepscope-ring", failed)
        if self._thread is None:
            failed(RuntimeError("no thread could be started"))

    def stop(self) -> None:
        """Copy no more."""
        self._done.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while not self._done.wait(COPY_SECONDS):
            self._copy()


def _is_safe_to_map(folder: Path) -> bool:
    return hasattr(os, "posix_fallocate") and file_system(folder) in _KEEPING


def file_system(folder: Path) -> str:
    """The kind of file system that the folder is on; empty where the system does not report it."""
    try:
        device = folder.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            for line in file:
                place, _, kind = line.partition(" - ")
                if place.split()[2] == wanted:
                    return kind.split()[0]
    except (OSError, IndexError):
        pass
    return ""
