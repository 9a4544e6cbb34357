"""What goes wrong while recording: told once as a warning, kept for the sidecar, never raised into the loop."""

from __future__ import annotations

import errno
import sys
import warnings
from dataclasses import asdict, dataclass
from typing import Any


class CaptureWarning(UserWarning):
    """Something could not be recorded; the job itself goes on."""


@dataclass(frozen=True)
class Trouble:
    """A problem of the capture, in the words of the sidecar."""

    code: str
    title: str
    detail: str = ""
    fix: str = ""
    severity: str = "warning"


class Troubles:
    """Those of one Profiler: each kind is warned of once."""

    def __init__(self) -> None:
        self.found: list[Trouble] = []

    def add(self, trouble: Trouble) -> None:
        """Keep it, and warn unless the same was told before."""
        if any((each.code, each.title) == (trouble.code, trouble.title) for each in self.found):
            return
        self.found.append(trouble)
        tell(f"{trouble.title}. {trouble.detail} {trouble.fix}".strip())

    def note(self, trouble: Trouble) -> None:
        """Keep it for the sidecar, in place of what was told before; without a warning, which could save nothing."""
        key = trouble.code, trouble.title
        self.found = [each for each in self.found if (each.code, each.title) != key] + [trouble]

    def failed(self, what: str, error: BaseException) -> None:
        """Something of ours or of a framework raised."""
        self.add(explain(what, error))

    def rows(self) -> list[dict[str, Any]]:
        """For the sidecar."""
        return [asdict(each) for each in self.found]


def tell(text: str) -> None:
    """One warning on stderr. Filters that turn warnings into errors must not reach the loop."""
    try:
        warnings.warn(f"stepscope: {text}", CaptureWarning, stacklevel=_outside())
    except Exception:
        try:
            sys.stderr.write(f"stepscope: {text}\n")
        except Exception:  # a closed stderr
            pass


def _outside() -> int:
    """How many frames up the user's own code is: that is the line to name."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and "stepscope" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
        level += 1
    return level


def explain(what: str, error: BaseException) -> Trouble:
    """The error in words, with the fix where the cause is known."""
    said = f"{type(error).__name__}: {error}"
    lower = said.lower()
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Trouble(
            "disk-full",
            "No room for the profile",
            f"{what}: {said}.",
            "Free some space, or record fewer steps.",
            "error",
        )
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return Trouble(
            "folder-unwritable",
            "The profile's folder cannot be written",
            f"{what}: {said}.",
            "Give a folder that this user can write.",
            "error",
        )
    if "cupti" in lower or "insufficient_privileges" in lower:
        return Trouble(
            "cupti-failed",
            "The GPU could not be traced",
            f"{what}: {said}.",
            "Run `stepscope doctor` on this machine: it names the cause.",
            "error",
        )
    if "another profiler" in lower or "already been started" in lower or "only one profile" in lower:
        return Trouble(
            "second-profiler",
            "Another profiler is running",
            f"{what}: {said}.",
            "Run one profiler at a time.",
            "error",
        )
    return Trouble(
        "capture-failed", f"{what} failed", f"{said}.", "Run `stepscope doctor` on this machine.", "error"
    )
