"""The one error class that users meet: what went wrong, where, and what to do about it."""

from __future__ import annotations


class StepscopeError(Exception):
    """A failure that the user sees as a message, without a traceback."""

    exit_code = 1

    def __init__(self, what: str, *, fix: str | None = None) -> None:
        super().__init__(what if fix is None else f"{what}\n{fix}")
        self.what = what
        self.fix = fix


def no_such_path(path: object) -> str:
    """The one sentence for a path that does not exist."""
    return f"No such file or folder: {path}"


class UnreadableFile(StepscopeError):
    """A file that is not a profile, or cannot be read at all."""


class NothingFound(StepscopeError):
    """A path, folder or pattern that holds no profile."""


class QueryRefused(StepscopeError):
    """A query that asks for anything but a SELECT over the tables."""


class NotInstalled(StepscopeError, ImportError):
    """Something that the recorder alone (stepscope-capture) does not have."""


def not_installed(what: str) -> NotInstalled:
    """The one sentence for what is in `stepscope`, but not in `stepscope-capture`."""
    return NotInstalled(
        f"{what} is not part of stepscope-capture, which only records.",
        fix="Install the rest, here or where the profile is read: pip install stepscope",
    )


def is_fault(error: BaseException) -> bool:
    """Whether it is a fault in the code, also one of Polars, whose PanicException does not derive from Exception."""
    if isinstance(error, StepscopeError):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def first_line(error: BaseException) -> str:
    """The kind of the error and the first line of what it says."""
    return f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
