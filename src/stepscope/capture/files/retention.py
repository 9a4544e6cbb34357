"""How many windows stay: a schedule without an end must not fill the disk.

Only files that this process wrote are removed, and only as long as they are still the ones that it wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepscope.capture.files.published import Published
from stepscope.capture.process.troubles import Troubles, trouble
from stepscope.units import count, size

Keep = int | Literal["newest"] | None
MOST_WINDOWS = 50
MOST_BYTES = 4 << 30


@dataclass(frozen=True)
class _Limits:
    windows: int | None
    bytes: int | None


def limits(keep: Keep, *, is_endless: bool) -> _Limits:
    """What was asked for; ValueError for what makes no sense."""
    if keep == "newest":
        return _Limits(MOST_WINDOWS, MOST_BYTES) if is_endless else _Limits(None, None)
    if keep is None:
        return _Limits(None, None)
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise ValueError("keep is how many windows stay, 1 or more, or None for all of them")
    return _Limits(keep, None)


class _Window:
    """The files of one window, as they were written."""

    def __init__(self, published: list[Published]) -> None:
        self.published = published
        self._files = {path: _identity(path) for each in published for path in each.files[:-1]}
        self._sidecars = [each.sidecar for each in published]

    def size(self) -> int:
        """Bytes on the disk."""
        return sum(_bytes(path) for path in (*self._files, *self._sidecars))

    def remove(self) -> None:
        """The traces first: a trace without its sidecar can still be read."""
        if any(_identity(path) not in (None, known) for path, known in self._files.items()):
            return  # someone put another file in its place
        for path in (*self._files, *self._sidecars):
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in self._sidecars}:
            if folder.parent.parts[-2:] == ("plugins", "profile"):
                remove_if_empty(folder)


class Retention:
    """The windows of one Profiler that are on the disk, oldest first."""

    def __init__(self, limits: _Limits, troubles: Troubles) -> None:
        self._limits = limits
        self._troubles = troubles
        self._windows: list[_Window] = []
        self._removed = self._removed_bytes = 0

    def add(self, published: list[Published]) -> list[Published]:
        """A window was written: what had to go for it. The newest one stays, however large it is."""
        if not published or self._limits == _Limits(None, None):
            return []
        self._windows.append(_Window(published))
        gone: list[Published] = []
        sizes = [window.size() for window in self._windows]
        while len(self._windows) > 1 and self._is_too_much(sizes):
            self._removed_bytes += sizes.pop(0)
            gone += self._remove_oldest()
        if gone:
            self._tell(gone[-1])
        return gone

    def _is_too_much(self, sizes: list[int]) -> bool:
        windows, most = self._limits.windows, self._limits.bytes
        return (windows is not None and len(sizes) > windows) or (most is not None and sum(sizes) > most)

    def _remove_oldest(self) -> list[Published]:
        window = self._windows.pop(0)
        try:
            window.remove()
        except OSError as error:
            self._troubles.failed("Removing an older window", error)
        self._removed += 1
        return window.published

    def _tell(self, last: Published) -> None:
        """The first time as a warning, then only in the sidecars."""
        kept = f"the newest {count(self._limits.windows or 0)} windows"
        kept += f", at most {size(self._limits.bytes)}, are kept" if self._limits.bytes else " are kept"
        removed = trouble(
            "windows-removed",
            f"{count(self._removed)} so far, with {size(self._removed_bytes)}, the last one {last.files[0].name}: {kept}.",
        )
        self._troubles.add(removed)
        self._troubles.note(removed)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def remove_if_empty(folder: Path) -> None:
    """A run folder whose files were removed."""
    try:
        folder.rmdir()
    except OSError:  # other workers have files in it
        return
