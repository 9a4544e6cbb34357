"""A folder that belongs to the user and is closed to others: its content can be trusted, and no other user can read it.

Windows keeps the folders of its users apart by itself: nothing is checked there.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

PRIVATE = 0o700
PRIVATE_FILE = 0o600
_OPEN = stat.S_IRWXG | stat.S_IRWXO
# Entries of the cache, and those that are being written.
_OURS = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}|\.new-\w+")


class NotPrivate(OSError):
    """A folder that is not used; `case` names what to do in the catalogue of problems (`cache-unwritable`)."""

    def __init__(self, why: str, case: str) -> None:
        super().__init__(why)
        self.case = case


def make_private(folder: Path) -> None:
    """Make the folder, and those above it that are missing, for this user alone; one that is there is checked."""
    missing = [folder, *folder.parents]
    for path in reversed(missing[: next((at for at, each in enumerate(missing) if each.exists()), 0)]):
        path.mkdir(PRIVATE, exist_ok=True)  # another process may have been faster
    check_private(folder)


def check_private(folder: Path) -> None:
    """Raise where others could have written to the folder or may read it.

    One that only stepscope has filled is closed again. Others are left alone: another user may share them on purpose.
    """
    if not hasattr(os, "geteuid"):
        return
    user = os.geteuid()
    link = folder.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (user, 0):
        raise NotPrivate("it is a link that another user made", "link")
    facts = folder.stat()
    if not stat.S_ISDIR(facts.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
    if facts.st_uid != user:
        raise NotPrivate("the folder belongs to another user", "foreign")
    if facts.st_mode & _OPEN and not _close(folder):
        mode = stat.S_IMODE(facts.st_mode)
        raise NotPrivate(f"the folder is open to other users (mode {mode:03o})", "open")


def _close(folder: Path) -> bool:
    """Take from others what they may do, if the folder holds entries of the cache and nothing else; whether that worked."""
    names = [each.name for each in folder.iterdir()]
    if not names or not all(map(_OURS.fullmatch, names)):
        return False
    try:
        folder.chmod(PRIVATE)
    except OSError:
        return False
    return not folder.stat().st_mode & _OPEN  # some file systems know no modes


def make_file(path: Path) -> None:
    """An empty file that only the user may open, for others to fill."""
    path.touch(PRIVATE_FILE, exist_ok=False)
