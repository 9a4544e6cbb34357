"""Answers kept beside the tables: what was computed of a profile, as bytes, so that it can be shown without its tables.

An entry is a folder named as those of tables are: after what was asked about, and its state. In it each answer is a file
with its checksum in front, written aside and renamed. One that is damaged counts as none, and is replaced by the next one.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from zlib import crc32

from stepscope.profiles.cache.place import (
    ASIDE,
    MANIFEST,
    Identity,
    default_folder,
    digest,
    drop_outdated,
    is_ours,
    limit_bytes,
    prune,
    touch,
)
from stepscope.profiles.cache.private_folder import PRIVATE, check_private, make_private

# Of one state of a profile: a page asks for a report, the same with all rows, and some tiles; the oldest go first.
MOST_ANSWERS = 64
LARGEST_BYTES = 64 << 20
_SUM_BYTES = 8


class Answers:
    """The answers about one state of a profile. Nothing here raises: what cannot be kept or found is computed again."""

    def __init__(self, identity: Identity, folder: Path | None = None, limit: int | None = None) -> None:
        self.identity = identity
        self._folder = folder
        self._limit = limit_bytes() if limit is None else limit

    def get(self, name: str) -> bytes | None:
        """The answer of this name, as it was kept."""
        if self._limit <= 0:
            return None
        try:
            entry = self._checked_entry()
            path = entry / _file_of(name)
            data = path.read_bytes()
        except (OSError, RuntimeError):
            return None
        if len(data) < _SUM_BYTES or data[:_SUM_BYTES] != _sum_of(data[_SUM_BYTES:]):
            return None
        touch(entry)
        _note_use(path)
        return data[_SUM_BYTES:]

    def keep(self, name: str, data: bytes) -> None:
        """Keep the answer for the next time, and let go of older ones where there are too many."""
        if not 0 < len(data) <= min(LARGEST_BYTES, self._limit):
            return
        try:
            entry = self._made_entry()
            _write(entry / _file_of(name), _sum_of(data) + data)
            _drop_oldest(entry)
        except (OSError, RuntimeError):
            pass

    @property
    def _entry(self) -> Path:
        if self._folder is None:
            self._folder = default_folder()
        return self._folder / self.identity.key

    def _checked_entry(self) -> Path:
        """The folder of the answers, if no other user can have written there; otherwise OSError."""
        check_private(self._entry.parent)
        facts = self._entry.lstat()
        if not stat.S_ISDIR(facts.st_mode) or not is_ours(facts):
            raise PermissionError("someone else may have written it")
        return self._entry

    def _made_entry(self) -> Path:
        make_private(self._entry.parent)
        if not self._entry.exists():
            self._entry.mkdir(PRIVATE, exist_ok=True)
            drop_outdated(self._entry.parent, self.identity.key)
            prune(self._entry.parent, self._limit)
        if not (self._entry / MANIFEST).exists():
            _write(self._entry / MANIFEST, b"{}")
        return self._checked_entry()


def _file_of(name: str) -> str:
    return f"{digest(name)}.answer"


def _sum_of(data: bytes) -> bytes:
    return b"%08x" % crc32(data)


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all; only the user may read it."""
    handle, aside = tempfile.mkstemp(prefix=ASIDE, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _note_use(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        pass


def _drop_oldest(entry: Path) -> None:
    kept = sorted(entry.glob("*.answer"), key=lambda path: path.stat().st_mtime_ns)
    for path in kept[: max(0, len(kept) - MOST_ANSWERS)]:
        path.unlink(missing_ok=True)
