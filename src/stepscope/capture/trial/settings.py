"""The settings that won a trial, in a file: `stepscope try --apply FILE`, `stepscope run --with FILE`."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.capture.trial.changes import CHANGES
from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.safe import safe

SCHEMA = "stepscope.settings/1"


def write_settings(path: Path, changes: list[str]) -> None:
    """As JSON that a person can read and edit."""
    try:
        path.write_text(json.dumps({"schema": SCHEMA, "changes": changes}, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise StepscopeError(f"Cannot write {path}: {error.strerror or error}.") from None


def read_settings(path: Path) -> list[str]:
    """The changes of the file, all of which must be known."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableFile(f"Cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        found = None
    changes = found.get("changes") if isinstance(found, dict) else None
    if not isinstance(changes, list):
        raise UnreadableFile(
            f"{path} holds no settings of a trial.", fix="stepscope try --apply FILE writes them."
        )
    unknown = [name for name in changes if name not in CHANGES]
    if unknown:
        raise UnreadableFile(
            f"{path} names an unknown change: {safe(str(unknown[0])[:60])}.",
            fix=f"Known: {', '.join(CHANGES)}.",
        )
    return changes
