"""Whether a TensorBoard event file holds a profile: only those of TensorFlow 1 may, one record of many."""

from __future__ import annotations

from typing import IO

RECORDS_LOOKED_AT = 10_000


def search(file: IO[bytes], size: int) -> str:
    """Why there is no profile in it; empty if there is one."""
    at = 0
    for _ in range(RECORDS_LOOKED_AT):
        if at + 12 > size:
            return "a TensorBoard event file without a profile (no RunMetadata)"
        file.seek(at)
        head = file.read(44)
        length = int.from_bytes(head[:8], "little")
        if _is_run_metadata(head[12 : 12 + length]):
            return ""
        at += 16 + length
    return f"a TensorBoard event file without a profile in its first {RECORDS_LOOKED_AT:,} records"


def _is_run_metadata(event: bytes) -> bool:
    """An event begins with its wall time and step; field 8 is a tagged RunMetadata."""
    at = 9 if event[:1] == b"\x09" else 0
    if event[at : at + 1] == b"\x10":
        at += 1
        while at < len(event) and event[at] & 0x80:
            at += 1
        at += 1
    return event[at : at + 1] == b"\x42"
