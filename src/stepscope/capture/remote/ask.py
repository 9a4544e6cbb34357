"""The other end of `listen`: find processes that listen, and ask them to record."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from stepscope.capture.remote import sockets
from stepscope.errors import StepscopeError

# A job may hold Python's lock for long, for one while it compiles, and the machine may be busy.
_PATIENCE_SECONDS = 30.0
_MOST_AT_ONCE = 32


class NotListening(StepscopeError):
    """No process answers there."""


def listening() -> list[Path]:
    """The sockets of this user's processes; those that were left behind are removed."""
    found = []
    for folder in sockets.folders():
        try:
            paths = sorted(folder.glob(f"*{sockets.ENDING}")) if sockets.is_ours(folder) else []
        except OSError:
            continue
        for path in paths:
            if not sockets.is_our_socket(path):
                continue
            pid = path.name.removesuffix(sockets.ENDING)
            if pid.isdigit() and not Path("/proc", pid).exists() and Path("/proc").is_dir():
                for left in (path, *folder.glob(f"{pid}.*.stacks")):
                    left.unlink(missing_ok=True)
            else:
                found.append(path)
    return found


def address_of(target: str) -> Path:
    """The socket of a process, by its number or its path."""
    if not sockets.is_supported():
        raise NotListening(
            f"{sockets.UNSUPPORTED[0].upper()}{sockets.UNSUPPORTED[1:]}.",
            fix="Start the job with `stepscope run`, or record with stepscope.profile.",
        )
    if not target.isdigit():
        return Path(target)
    for path in listening():
        if path.name == f"{target}{sockets.ENDING}":
            return path
    raise NotListening(
        f"Process {target} does not listen.",
        fix="Call stepscope.listen() in it, or start it with STEPSCOPE_LISTEN=1 or `stepscope run --listen`.",
    )


def connect(path: Path) -> socket.socket:
    """A connection, or an error that says what to do."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(_PATIENCE_SECONDS)
    try:
        made.connect(str(path))
    except OSError as error:
        made.close()
        raise NotListening(
            f"No process is listening at {path}: {error.strerror or error}.",
            fix="`stepscope capture` without arguments lists the processes that do.",
        ) from None
    return made


def status(path: Path) -> dict[str, Any]:
    """What the process at this address says of itself."""
    with closing(connect(path)) as connection:
        try:
            sockets.send(connection, verb="status")
            about = next(sockets.lines(connection), None)
        except OSError as error:
            raise _silent(path, str(error.strerror or error)) from None
    if about is None:
        raise _silent(path, "it hung up")
    return about


def statuses() -> list[dict[str, Any]]:
    """What all processes that listen say of themselves, asked at once; those that hang or have just ended are left out."""
    paths = listening()
    with ThreadPoolExecutor(min(max(1, len(paths)), _MOST_AT_ONCE)) as pool:
        return [about for about in pool.map(_status_or_none, paths) if about is not None]


def _status_or_none(path: Path) -> dict[str, Any] | None:
    try:
        return status(path)
    except StepscopeError:
        return None


def order(path: Path, request: dict[str, Any], timeout: float) -> Iterator[dict[str, Any]]:
    """Ask it to record; its news, the last of which is `done`, `refused` or `gone`. After the timeout there are no more."""
    with closing(connect(path)) as connection:
        try:
            sockets.send(connection, verb="capture", **request)
            connection.settimeout(timeout)
            for news in sockets.lines(connection):
                yield news
                if news.get("state") in ("done", "refused"):
                    return
        except TimeoutError:
            return
        except OSError:  # the connection broke with the process: below
            pass
        yield {"state": "gone"}


def _silent(path: Path, why: str) -> NotListening:
    return NotListening(
        f"The process at {path} does not answer: {why}.", fix="It may hang, or have ended. Try again."
    )
