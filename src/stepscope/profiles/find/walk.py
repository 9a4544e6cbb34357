"""All files under a path, each once; everything skipped has a reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import field
from datetime import datetime
from glob import glob
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.formats.source import access_hint
from stepscope.lazy import dataclass
from stepscope.profiles.find.file_names import natural
from stepscope.profiles.find.paths import Location, full_url, missing, no_permission, posix

# A path such as / or a home folder holds millions of files that are none of ours.
FILES_LOOKED_AT = 500_000
_MARKERS = ".stepscope-runs"  # of capture/files/run_folder.py
_NOT_ENTERED = {"__pycache__", "node_modules", "site-packages", "dist-packages"}


@dataclass(frozen=True)
class Skipped:
    """A file or folder that was not taken, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class FoundFile:
    """A regular file. `is_named` when the caller named it instead of a folder."""

    path: str
    size: int
    mtime_ns: int
    is_named: bool = False


@dataclass
class Walk:
    """A walk over one location; `skipped`, `files` and `folders` describe what was visited."""

    location: Location
    skipped: list[Skipped] = field(default_factory=list)
    files: int = 0
    folders: int = 0
    _seen: dict[tuple[int, int], str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[FoundFile]:
        """The files, in natural order of their paths within a folder."""
        if self.location.filesystem is None:
            yield from self._local()
        else:
            yield from self._remote()

    def _local(self) -> Iterator[FoundFile]:
        path = self.location.path
        if os.path.lexists(path):
            _check_reachable(path)
            yield from self._under([path], named=path)
        elif self.location.is_pattern:
            matches = glob(path, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
            yield from self._under(sorted(map(posix, matches), key=natural))
        else:
            raise missing(self.location)

    def _under(self, paths: list[str], named: str | None = None) -> Iterator[FoundFile]:
        waiting = paths[::-1]
        while waiting:
            path = waiting.pop()
            try:
                facts = Path(path).stat()
                if stat.S_ISDIR(facts.st_mode):
                    waiting += [
                        f"{path.rstrip('/')}/{name}" for name in reversed(self._names_in(path, facts))
                    ]
                elif self._is_file(path, facts):
                    yield FoundFile(path, facts.st_size, facts.st_mtime_ns, path == named)
            except OSError as error:
                self._skip(path, _why(error))
            if self.files >= FILES_LOOKED_AT:
                self._skip(
                    path, f"not finished: {self.files:,} files were looked at; name a folder further down"
                )
                return

    def _names_in(self, path: str, facts: os.stat_result) -> list[str]:
        name = path.rsplit("/", 1)[-1]
        if name == _MARKERS:  # our own, and always there beside recordings
            return []
        if self.folders and (name in _NOT_ENTERED or (name.startswith(".") and name.strip("."))):
            self._skip(path, "a folder that holds no profiles, by its name")
            return []
        if not self._is_new(path, facts, "a link to a folder already visited:"):
            return []
        self.folders += 1
        return sorted((inside.name for inside in Path(path).iterdir()), key=natural)

    def _is_file(self, path: str, facts: os.stat_result) -> bool:
        self.files += 1
        if stat.S_ISREG(facts.st_mode):
            return self._is_new(path, facts, "the same file as")
        self._skip(path, "not a regular file but a device, pipe or socket")
        return False

    def _is_new(self, path: str, facts: os.stat_result, what: str) -> bool:
        key = (facts.st_dev, facts.st_ino)
        if facts.st_ino and key in self._seen:
            self._skip(path, f"{what} {self._seen[key]}")
            return False
        self._seen[key] = path
        return True

    def _remote(self) -> Iterator[FoundFile]:
        filesystem, path = self.location.filesystem, self.location.path
        try:
            listed = self._listed(filesystem, path)
        except StepscopeError:
            raise
        except Exception as error:  # every filesystem has errors of its own
            what = f"Cannot list {path}: {type(error).__name__}: {error}"
            raise StepscopeError(what, fix=access_hint(path, error)) from None
        self.folders += len({file.rsplit("/", 1)[0] for file in listed})
        for file in sorted(listed, key=natural):
            self.files += 1
            facts = listed[file]
            url = full_url(filesystem, file)
            yield FoundFile(url, int(facts.get("size") or 0), _modified(facts), url == path)

    def _listed(self, filesystem: Any, path: str) -> dict[str, dict[str, Any]]:
        """The files there by path; a pattern may match folders, whose files count as well."""
        if filesystem.exists(path):
            return dict(filesystem.find(path, detail=True))
        if not self.location.is_pattern:
            raise missing(self.location)
        found: dict[str, dict[str, Any]] = {}
        for match, facts in filesystem.glob(path, detail=True).items():
            found.update(
                filesystem.find(match, detail=True) if facts.get("type") == "directory" else {match: facts}
            )
        return found

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))


def _why(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "no permission"
    if isinstance(error, FileNotFoundError):
        return "a link to nothing"
    return (error.strerror or str(error)).lower()


def _check_reachable(path: str) -> None:
    """What was named itself must be there; for anything below it, only the reason is recorded."""
    try:
        facts = Path(path).stat()
        if stat.S_ISDIR(facts.st_mode):
            next(Path(path).iterdir(), None)
    except PermissionError:
        raise no_permission(path) from None
    except FileNotFoundError:
        raise UnreadableFile(f"Broken symbolic link: {path}") from None
    except OSError as error:
        raise UnreadableFile(f"Cannot open {path}: {error.strerror or error}") from None
    if not stat.S_ISDIR(facts.st_mode) and not stat.S_ISREG(facts.st_mode):
        raise UnreadableFile(f"Not a regular file but a device, pipe or socket: {path}")


def _modified(facts: dict[str, Any]) -> int:
    """When a remote file was written; each filesystem calls it otherwise."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = facts.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.replace("Z", "+00:00"))
            except ValueError:
                continue
        if isinstance(value, datetime):
            return int(value.timestamp() * 1_000_000_000)
        if isinstance(value, int | float):
            return int(value * 1_000_000_000)
    return 0
