"""The settings that won a trial, in a file: `stepscope try --apply FILE`, `stepscope run --with FILE`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stepscope.capture.trial.changes import CHANGES
from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.safe import safe

SCHEMA = "stepscope.settings/1"


class Settings(msgspec.Struct):
    """Names of changes."""

    changes: list[str] = []
    schema: str = SCHEMA


def write_settings(path: Path, changes: list[str]) -> None:
    """As JSON that a person can read and edit."""
    text = msgspec.json.format(msgspec.json.encode(Settings(changes)), indent=2)
    try:
        path.write_bytes(text + b"\n")
    except OSError as error:
        raise StepscopeError(f"Cannot write {path}: {error.strerror or error}.") from None


def read_settings(path: Path) -> list[str]:
    """The changes of the file, all of which must be known."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Settings)
    except OSError as error:
        raise UnreadableFile(f"Cannot read {path}: {error.strerror or error}.") from None
    except msgspec.MsgspecError as error:
        raise UnreadableFile(f"{path} holds no settings of a trial: {safe(error)}") from None
    unknown = [name for name in found.changes if name not in CHANGES]
    if unknown:
        raise UnreadableFile(
            f"{path} names an unknown change: {safe(unknown[0])}.", fix=f"Known: {', '.join(CHANGES)}."
        )
    return found.changes
