"""Where things are kept, how much of them, and how a file is identified: for tables, and for answers about them."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from hashlib import blake2b
from pathlib import Path

from stepscope.formats.source import Source
from stepscope.lazy import dataclass

DEFAULT_LIMIT_GB = 20.0
LEFTOVER_SECONDS = 3600
MANIFEST = "manifest.json"
ASIDE = ".new-"


@dataclass(frozen=True)
class Identity:
    """A profile in one state. Another state, or another version of ours, is another identity."""

    path: str
    state: str

    @property
    def key(self) -> str:
        """The name of its entry: the first half is the same for all states of a path."""
        return f"{digest(self.path)}-{digest(self.state)}"


def digest(text: str) -> str:
    """A short name for the text."""
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def state_of(source: Source) -> Identity | None:
    """The file as it is now; None where its filesystem cannot distinguish two states."""
    try:
        if source.filesystem is not None:
            return Identity(source.path, f"{source.filesystem.ukey(source.path)} {source.size()}")
        facts = Path(source.path).stat()
    except Exception:  # remote filesystems raise anything; without a state there is no caching
        return None
    # The change time moves even when someone sets the modification time back.
    state = f"{facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns} {facts.st_dev} {facts.st_ino}"
    return Identity(os.path.realpath(source.path), state)


def default_folder() -> Path:
    """STEPSCOPE_CACHE, else the place that the system has for caches."""
    chosen = os.environ.get("STEPSCOPE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "stepscope"
    if os.name == "nt":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "stepscope" / "cache"
        )
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepscope"


def limit_bytes() -> int:
    """How much may be kept: STEPSCOPE_CACHE_GB gigabytes, 0 for nothing at all."""
    try:
        gigabytes = float(os.environ.get("STEPSCOPE_CACHE_GB", DEFAULT_LIMIT_GB))
    except ValueError:
        gigabytes = DEFAULT_LIMIT_GB
    return int(gigabytes * 1e9)


def prune(folder: Path, limit: int) -> None:
    """Drop what was used longest ago until all fits, and what dead writers left."""
    used: list[tuple[float, int, Path]] = []
    for entry in list(folder.iterdir()):
        is_aside = entry.name.startswith(ASIDE)
        try:
            changed = (entry if is_aside else entry / MANIFEST).stat().st_mtime
            held = sum(file.stat().st_size for file in entry.iterdir())
        except OSError:
            continue  # someone else drops it just now, or it is none of ours
        if not is_aside:
            used.append((changed, held, entry))
        elif time.time() - changed > LEFTOVER_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)
    total = sum(held for _, held, _ in used)
    for _, held, entry in sorted(used):
        if total > limit:
            shutil.rmtree(entry, ignore_errors=True)
            total -= held


def drop_outdated(folder: Path, key: str) -> None:
    """Forget the other states of what has this key."""
    for outdated in folder.glob(f"{key.split('-', maxsplit=1)[0]}-*"):
        if outdated.name != key:
            shutil.rmtree(outdated, ignore_errors=True)


def is_ours(facts: os.stat_result) -> bool:
    """Whether only this user can have written there. Windows keeps profiles apart by itself."""
    if not hasattr(os, "geteuid"):
        return True
    return facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def touch(entry: Path) -> None:
    """Note the use, for what is dropped first."""
    try:
        os.utime(entry / MANIFEST)
    except OSError:
        pass
