"""Whether a collector wrote its whole file: some of them do not say when the disk is full."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from stepscope.capture.files.protobuf import read_varint

_TAIL = 4096
_CHUNK = 1 << 20


def is_whole(path: Path) -> bool:
    """By the end of JSON, the checksum of gzip, or the lengths inside a protobuf; other files only must not be empty."""
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
