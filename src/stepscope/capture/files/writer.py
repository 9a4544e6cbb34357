"""Files appear under their final name only when they are whole, and never take the place of another.

A window is recorded into a hidden folder beside its final place. Each file is checked to be complete, brought to the disk,
and linked to an unused name. The sidecar claims the name; the trace follows, so no trace is without its sidecar.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.files.protobuf import read_varint

SIDECAR = ".stepscope.json"
# Of the light window. Other tools look for .json, .gz and .pb: they must find one trace, the full one.
LIGHT = ".stepscope-light"
_TRIES = 10_000
_TAIL = 4096
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Recorded:
    """A file in the hidden folder, and the ending of its final name; why the sampled Python frames are not in it, if they are not."""

    path: Path
    ending: str
    no_frames: str = ""


class Incomplete(OSError):
    """A collector wrote only part of its file, which is what a full disk looks like."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ENOSPC, f"{name} was written only in part")


class Staging:
    """The hidden folder of one window."""

    def __init__(self, target: Path, worker: str) -> None:
        target.mkdir(parents=True, exist_ok=True)
        self.target = target
        self.path = target / f".recording-{worker}-{secrets.token_hex(4)}"
        self.path.mkdir()

    def folder(self, name: str) -> Path:
        """A folder for one collector."""
        made = self.path / name
        made.mkdir(exist_ok=True)
        return made

    def remove(self) -> None:
        """Nothing is left of it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def publish(
        self, files: list[Recorded], place: Path, stems: Callable[[int], str], note: dict[str, Any]
    ) -> list[Path]:
        """Give the files of one trace their final names; the first is the trace, the rest its twins. The sidecar comes too."""
        for file in files:
            if not is_whole(file.path):
                raise Incomplete(file.path.name)
            _to_disk(file.path)
        place.mkdir(parents=True, exist_ok=True)
        stem = self._claim(place, stems, files[0].ending if files else "", note)
        made = []
        for file in reversed(files):
            final = place / f"{stem}{file.ending}"
            move_new(file.path, final)
            made.append(final)
        _folder_to_disk(place)
        return [*reversed(made), place / f"{stem}{SIDECAR}"]

    def _claim(self, place: Path, stems: Callable[[int], str], ending: str, note: dict[str, Any]) -> str:
        for attempt in range(_TRIES):
            stem = stems(attempt)
            if (place / f"{stem}{SIDECAR}").exists() or (ending and (place / f"{stem}{ending}").exists()):
                continue
            try:
                draft = write_json(self.path / "sidecar.json", named(note, stem, ending))
                move_new(draft, place / f"{stem}{SIDECAR}")
            except FileExistsError:
                continue
            return stem
        raise FileExistsError(f"no free name in {place}")


def named(note: dict[str, Any], stem: str, ending: str) -> dict[str, Any]:
    """The note with the names of the files that it is about."""
    named_note = note | {"file": stem + ending if ending else None}
    light = note.get("light") or {}
    if "moments_ns" in light:
        named_note["light"] = light | {"file": stem + LIGHT}
    return named_note


def packed(path: Path, ending: str) -> Recorded:
    """The file gzipped, fast rather than small: the job waits for it. What does not fit on the disk raises."""
    target = path.with_name(path.name + ".gz")
    with path.open("rb") as source, gzip.open(target, "wb", compresslevel=1) as out:
        shutil.copyfileobj(source, out, _CHUNK)
    path.unlink()
    return Recorded(target, ending + ".gz")


def move_new(source: Path, final: Path) -> None:
    """Rename, but raise FileExistsError rather than replace."""
    try:
        os.link(source, final)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        if final.exists():  # a file system without links: names hold host, process and time
            raise FileExistsError(errno.EEXIST, "taken", str(final)) from None
        source.rename(final)
        return
    source.unlink()


def replace_json(path: Path, value: dict[str, Any]) -> None:
    """A new content for a file of ours, at once or not at all."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_json(draft, value).replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, value: dict[str, Any]) -> Path:
    """The value as JSON, on the disk."""
    with path.open("w", encoding="utf-8") as file:
        json.dump(value, file, default=str)
        file.flush()
        os.fsync(file.fileno())
    return path


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _folder_to_disk(path: Path) -> None:
    """So that the names survive a crash of the machine; not all file systems can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def is_whole(path: Path) -> bool:
    """Whether a collector wrote its whole file: some of them do not say when the disk is full.

    By the end of JSON, the checksum of gzip, or the lengths inside a protobuf; other files only must not be empty.
    """
    if path.stat().st_size == 0:
        return False
    if path.name.endswith(".gz"):
        return _whole_gzip(path)
    if path.name.endswith(".json"):
        return _ends_with_brace(path)
    return _whole_messages(path) if path.name.endswith(".pb") else True


def _ends_with_brace(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read().rstrip()[-1:] in (b"}", b"]")


def _whole_gzip(path: Path) -> bool:
    try:
        with gzip.open(path, "rb") as file:
            while file.read(_CHUNK):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def _whole_messages(path: Path) -> bool:
    """The outermost fields must end where the file ends."""
    size = path.stat().st_size
    with path.open("rb") as file:
        at = 0
        while at < size:
            file.seek(at)
            head = file.read(20)
            try:
                tag, used = read_varint(head, 0)
                length, used = read_varint(head, used)
            except ValueError:
                return False
            if tag & 7 != 2:  # an XSpace holds nothing but messages and texts
                return False
            at += used + length
        return at == size
