"""The folders that an assistant may read: everything else is refused before it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stepscope.errors import StepscopeError, no_such_path
from stepscope.safe import safe


class Folders:
    """Paths below these folders, once all links are followed."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = tuple(Path(folder).resolve() for folder in folders)
        for folder in self.folders:
            if not folder.is_dir():
                raise StepscopeError(f"{folder} is not a folder.", fix="Name folders that hold profiles.")

    def find(self, path: str) -> Path:
        """The path, taken relative to a folder where it is not absolute."""
        for folder in self.folders:
            found = self._resolve(folder / path)
            if found is not None and found.is_relative_to(folder) and found.exists():
                return found
        if any(self._is_below(folder / path) for folder in self.folders):
            raise StepscopeError(
                no_such_path(safe(path[:200])), fix="The tool `profiles` lists what is there."
            )
        raise StepscopeError(
            f"{safe(path[:200])} is outside the folders that this server may read.",
            fix="Start `stepscope mcp` with its folder.",
        )

    def _is_below(self, path: Path) -> bool:
        found = self._resolve(path)
        return found is not None and any(found.is_relative_to(folder) for folder in self.folders)

    @staticmethod
    def _resolve(path: Path) -> Path | None:
        try:
            return path.resolve()
        except (OSError, ValueError, RuntimeError):  # no name at all, or links in a circle
            return None
