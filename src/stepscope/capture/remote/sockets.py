"""Where the sockets of listening processes are, and how both sides talk: JSON, one object a line.

The folder and the sockets in it belong to one user, and no other user can open them; the listening side checks the caller as well.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ENDING = ".sock"
_LONGEST_LINE = 1 << 20
# The address of a socket, with the number of a process, has 104 bytes on some systems.
_LONGEST_FOLDER = 80


class NotOurs(OSError):
    """A folder that someone else could have made."""


UNSUPPORTED = "recording from a running job needs Unix sockets, which Python does not have on this system"


def is_supported() -> bool:
    """Not on Windows: `stepscope run` and `stepscope.profile` work there without."""
    return hasattr(socket, "AF_UNIX") and hasattr(os, "getuid")


def folders() -> list[Path]:
    """Where a socket may be, the best place first. A job and its user may have been started with other environments.

    A folder that is named is the only one: it is how a job in a container and its user outside meet.
    """
    if not is_supported():
        return []
    named = os.environ.get("STEPSCOPE_SOCKETS")
    if named:
        return [Path(named)]
    found = []
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    for each in (runtime, f"/run/user/{os.getuid()}"):
        if each and Path(each).is_dir() and os.access(each, os.W_OK):
            found.append(Path(each) / "stepscope")
    found += [Path(each) / f"stepscope-{os.getuid()}" for each in (tempfile.gettempdir(), "/tmp")]
    return [folder for folder in dict.fromkeys(found) if len(os.fsencode(folder)) < _LONGEST_FOLDER]


def own_folder() -> Path:
    """The first that is, or can be made, ours alone."""
    trouble: OSError | None = None
    for folder in folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_ours(folder):
                return folder
            trouble = NotOurs(f"{folder} belongs to someone else, or others may use it (see chmod 700)")
        except OSError as error:
            trouble = error
    raise trouble or NotOurs("there is no folder for sockets" if is_supported() else UNSUPPORTED)


def is_ours(folder: Path) -> bool:
    """A real folder of this user, closed to everyone else."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def is_our_socket(path: Path) -> bool:
    """A real socket that a process of this user made: no link, and not the name of something else."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def opened(path: Path) -> socket.socket:
    """A listening socket at this path, for this user only. It appears there when it can be called."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(draft))
        draft.chmod(0o600)
        made.listen(8)
        draft.replace(path)
    except OSError:
        made.close()
        draft.unlink(missing_ok=True)
        raise
    return made


def caller(connection: socket.socket) -> int | None:
    """The user at the other end, where the system reports it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)


def send(connection: socket.socket, **message: Any) -> None:
    """One line."""
    connection.sendall(json.dumps(message, default=str).encode() + b"\n")


def lines(connection: socket.socket, longest: int = _LONGEST_LINE) -> Iterator[dict[str, Any]]:
    """What the other end says, until it hangs up. Anything but objects is left out."""
    waiting = b""
    while True:
        head, found, rest = waiting.partition(b"\n")
        if found:
            waiting = rest
            try:
                message = json.loads(head)
            except ValueError:
                continue
            if isinstance(message, dict):
                yield message
            continue
        part = connection.recv(1 << 16)
        if not part or len(waiting) > longest:
            return
        waiting += part
