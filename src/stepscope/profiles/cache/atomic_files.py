"""Files that appear whole or not at all, and never replace others unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stepscope.errors import StepscopeError


@contextmanager
def whole_file(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """A file to write, put in place when all of it is there."""
    refuse_existing(path, force)
    try:
        with _aside(path) as (file, temporary):
            yield file
            file.flush()
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def refuse_existing(path: Path, force: bool) -> None:
    """Stop before anything is computed if the file is there and may not be replaced."""
    if path.is_dir():
        raise StepscopeError(f"{path} is a folder, not a file.", fix="Choose another name with -o.")
    if path.exists() and not force:
        raise StepscopeError(
            f"{path} already exists.", fix="Add --force to overwrite it, or choose another name with -o."
        )


def ready_folder(path: Path, force: bool) -> None:
    """Make the folder. One that holds files is used only by force, and keeps those that are not written anew."""
    try:
        if path.exists() and not path.is_dir():
            raise StepscopeError(f"{path} is a file, not a folder.", fix="Choose another name with -o.")
        if path.is_dir() and any(path.iterdir()) and not force:
            raise StepscopeError(
                f"{path} already exists and is not empty.",
                fix="Add --force to write into it, or choose another name with -o.",
            )
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> StepscopeError:
    """The error in words."""
    return StepscopeError(
        f"Cannot write {path}: {error.strerror or error}", fix="Choose another place with -o."
    )


@contextmanager
def _aside(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A file beside the wanted one, gone afterwards unless it was renamed."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
