"""What goes wrong while recording: one warning for each kind, kept for the sidecar, never raised into the loop."""

from __future__ import annotations

import errno
import sys
import warnings
from dataclasses import asdict, dataclass
from typing import Any

from stepscope.problems.catalogue import words


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


def trouble(code: str, detail: str = "", *, case: str = "", **facts: str) -> Trouble:
    """A problem in the words of the catalogue; the facts fill the placeholders of title and fix."""
    said = words(code, case, **facts)
    return Trouble(code, said.title, detail, said.fix, said.severity)


class Troubles:
    """Those of one Profiler: each kind is warned of once."""

    def __init__(self) -> None:
        self.found: list[Trouble] = []

    def add(self, trouble: Trouble) -> None:
        """Keep it, and warn unless the same was reported before."""
        if any((each.code, each.title) == (trouble.code, trouble.title) for each in self.found):
            return
        self.found.append(trouble)
        tell(f"{trouble.title}. {trouble.detail} {trouble.fix}".strip())

    def note(self, trouble: Trouble) -> None:
        """Keep it for the sidecar, in place of an earlier one of its kind; without a warning, which could save nothing."""
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
        return trouble("disk-full", f"{what}: {said}.")
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return trouble("folder-unwritable", f"{what}: {said}.")
    if "cupti" in lower or "insufficient_privileges" in lower:
        return trouble("cupti-failed", f"{what}: {said}.")
    if "another profiler" in lower or "already been started" in lower or "only one profile" in lower:
        return trouble("second-profiler", f"{what}: {said}.")
    return trouble("capture-failed", f"{said}.", what=what)
