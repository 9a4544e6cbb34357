"""Which commit runs: read from the files of git, without starting a process inside a job."""

from __future__ import annotations

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LARGEST = 4 << 20  # of packed references
_DEEPEST = 40


def find_commit(folder: Path | None = None) -> str | None:
    """The commit that is checked out in the folder or above it; None where there is none. Never raises."""
    try:
        start = (folder or Path.cwd()).resolve()
        for place in [start, *start.parents][:_DEEPEST]:
            if (place / ".git").exists():
                return _head_of(_git_folder(place / ".git"))
    except (OSError, RuntimeError, ValueError):
        pass
    return None


def _git_folder(path: Path) -> Path:
    """The folder itself; of a worktree or submodule the one that its file names."""
    if path.is_dir():
        return path
    named = _text(path).removeprefix("gitdir:").strip()
    return (path.parent / named).resolve()


def _head_of(git: Path) -> str | None:
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref:"):
        return _checked(head)
    reference = head.removeprefix("ref:").strip()
    if ".." in reference or reference.startswith("/"):
        return None
    common = git / "commondir"  # worktrees share references
    shared = (git / _text(common).strip()).resolve() if common.is_file() else git
    for place in (git, shared):
        if (place / reference).is_file():
            return _checked(_text(place / reference).strip())
    return _packed(shared / "packed-refs", reference)


def _packed(path: Path, reference: str) -> str | None:
    if not path.is_file():
        return None
    lines = (line.split(" ", 1) for line in _text(path).splitlines())
    return next((_checked(words[0]) for words in lines if words[1:] == [reference]), None)


def _checked(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST).decode("utf-8", "replace")
