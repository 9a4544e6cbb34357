"""Traces that were read before, kept as tables in the user's cache folder.

An entry is a folder named after the profile's path and state (size, times, inode or remote tag) and our versions:
whatever changes, the entry is not found and the profile is read again. It is written aside and renamed into place,
so that a reader never sees half of one. The folder is the user's own and closed to others, or it is not used: anyone who
can write to it can make up a profile. Opening compares file sizes; each table's CRC-32 (about 10 GB/s) is compared when
the table is first used, and damage then means a fresh read.
"""

from __future__ import annotations

import logging
import shutil
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shlex import quote

import msgspec
import polars as pl

from stepscope.formats.source import Source
from stepscope.problems.catalogue import CATALOGUE
from stepscope.profiles.cache import background
from stepscope.profiles.cache.mapped import Damaged
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
    state_of,
    touch,
)
from stepscope.profiles.cache.private_folder import NotPrivate, check_private, make_file, make_private
from stepscope.profiles.cache.stored import Contents, StoredTrace, lazily, write
from stepscope.trace.problems import Problem, problem
from stepscope.trace.schema import SCHEMA_VERSION, TABLES
from stepscope.trace.trace import Trace
from stepscope.units import size as bytes_text

# Raise it when readers fill the tables differently: what older ones stored is then read again.
READER_VERSION = 7
SPARE_BYTES = 64 << 20


class Manifest(msgspec.Struct):
    """What an entry holds, and of what."""

    identity: str
    contents: Contents


def _versions() -> str:
    """The digests notice a changed schema whose version was forgotten, and other words for problems, which are stored as well."""
    return f"{SCHEMA_VERSION}.{READER_VERSION}.{digest(repr(TABLES))}.{_catalogue_digest()}"


@cache
def _catalogue_digest() -> str:
    return digest(repr(CATALOGUE))


def identify(source: Source) -> Identity | None:
    """The profile as it is now; None where its filesystem cannot distinguish two states."""
    found = state_of(source)
    return None if found is None else Identity(found.path, f"{found.state} {_versions()}")


class Cache:
    """The user's cache folder. Nothing here raises: what cannot be kept or found is read again."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self._folder = folder
        self.limit = limit_bytes() if limit is None else limit

    @property
    def folder(self) -> Path:
        """Where entries are kept. A home that cannot be found out raises RuntimeError."""
        if self._folder is None:
            self._folder = default_folder()  # once: what is stored later goes where it was meant to go
        return self._folder

    def _checked_folder(self) -> Path:
        """The folder, if its content can be trusted; otherwise OSError."""
        check_private(self.folder)
        return self.folder

    def holds(self, identity: Identity) -> bool:
        """Whether the trace is stored by now."""
        try:
            return self.limit > 0 and (self._checked_folder() / identity.key / MANIFEST).is_file()
        except (OSError, RuntimeError):
            return False

    def open(self, identity: Identity, path: str, reload: Callable[[], Trace]) -> Trace | None:
        """The trace as it was stored, or None. `reload` reads the profile again if a table turns out damaged."""
        if self.limit <= 0:
            return None
        try:
            background.wait(str(self.folder / identity.key))
            entry = self._checked_folder() / identity.key
            manifest = _read_manifest(entry)
        except (OSError, RuntimeError):
            return None
        except (msgspec.MsgspecError, ValueError):
            self.discard(identity)
            return None
        stored = StoredTrace(entry, manifest.contents)
        try:
            if manifest.identity != identity.state:
                raise Damaged("it belongs to another profile")
            stored.check_sizes()
        except Damaged:
            self.discard(identity)
            return None
        touch(entry)
        return lazily(stored, path, reload)

    def store(self, identity: Identity, trace: Trace) -> Problem | None:
        """Keep the trace; the problem says why that could not be done."""
        prepared = self._prepared(trace)
        return self._completed(prepared, identity, trace) if isinstance(prepared, Path) else prepared

    def store_later(self, identity: Identity, trace: Trace) -> Problem | None:
        """Keep the trace while its reader goes on; `open` waits for it.

        A cache that is full or cannot be written is found out now. What fails after that is only logged.
        """
        prepared = self._prepared(trace)
        if not isinstance(prepared, Path):
            return prepared

        def complete() -> None:
            problem = self._completed(prepared, identity, trace)
            if problem is not None:
                logging.getLogger(__name__).warning("%s. %s %s", problem.title, problem.detail, problem.fix)
            self.prune()

        background.start(str(self.folder / identity.key), complete)
        return None

    def _prepared(self, trace: Trace) -> Path | Problem | None:
        """A folder aside to write to; None where nothing is to be kept."""
        if self.limit <= 0:
            return None
        try:
            make_private(self.folder)
            self._check_room(trace)
            return Path(tempfile.mkdtemp(prefix=ASIDE, dir=self.folder))
        except (OSError, RuntimeError) as error:
            return _unwritable(self._folder_text(), error)

    def _completed(self, aside: Path, identity: Identity, trace: Trace) -> Problem | None:
        """Write to the folder aside, and put it in place."""
        try:
            manifest = Manifest(identity.state, write(trace, aside))
            make_file(aside / MANIFEST)
            (aside / MANIFEST).write_bytes(msgspec.json.encode(manifest))
            self._put_in_place(aside, identity)
        except (
            OSError,
            RuntimeError,
            MemoryError,
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
        ) as error:
            return _unwritable(self._folder_text(), error)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return None

    def discard(self, identity: Identity) -> None:
        """Forget one trace."""
        try:
            shutil.rmtree(self.folder / identity.key, ignore_errors=True)
        except RuntimeError:
            pass

    def _folder_text(self) -> str:
        try:
            return str(self.folder)
        except RuntimeError:
            return "the home folder"

    def _check_room(self, trace: Trace) -> None:
        """Before the first byte: a disk filled to the brim hurts others more than a slow second open hurts us."""
        need = sum(int(frame.estimated_size()) for frame in trace.tables.values())
        if need > self.limit:
            raise OSError(f"the tables need {bytes_text(need)}, the limit is {bytes_text(self.limit)}")
        free = shutil.disk_usage(self.folder).free
        if need + SPARE_BYTES > free:
            raise OSError(f"the tables need {bytes_text(need)}, only {bytes_text(free)} are free")

    def _put_in_place(self, aside: Path, identity: Identity) -> None:
        entry = self.folder / identity.key
        try:
            aside.rename(entry)
        except OSError:
            if not entry.exists():
                raise
            # Another process was faster, and stored the same.
        drop_outdated(self.folder, identity.key)

    def prune(self) -> None:
        """Drop what was used longest ago until all fits, and what dead writers left."""
        try:
            prune(self._checked_folder(), self.limit)
        except (OSError, RuntimeError):
            pass


def _read_manifest(entry: Path) -> Manifest:
    facts = entry.lstat()
    if not stat.S_ISDIR(facts.st_mode) or not is_ours(facts):
        raise PermissionError("someone else may have written it")
    return msgspec.json.decode((entry / MANIFEST).read_bytes(), type=Manifest)


def _unwritable(folder: str, error: BaseException) -> Problem:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    evidence = f"{folder}: {reason}."
    if isinstance(error, NotPrivate):
        return problem("cache-unwritable", evidence, case=error.case, folder=quote(folder))
    return problem("cache-unwritable", evidence)
