"""Whether bytes begin as an event file does: asked of every file, so without what reads one."""

from __future__ import annotations

from stepscope.native.crc32c import crc32c

HEADER_BYTES = 12  # of a record: a length, and its checksum
_WALL_TIME = 0x09  # the first byte of every event: its time, as a double
_FILE_VERSION = b"brain.Event:"


def matches(head: bytes, name: str) -> bool:
    """By the checksum of the first length and the start of an event; of a stub too short for that, by its name."""
    if len(head) <= HEADER_BYTES:
        return bool(head) and ".tfevents." in name
    if _FILE_VERSION in head[HEADER_BYTES:64]:
        return True
    return head[HEADER_BYTES] == _WALL_TIME and starts_record(memoryview(head), 0)


def masked(checksum: int) -> int:
    """The checksum as it is stored: turned and shifted, so that data holding checksums can be checked too."""
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def starts_record(content: memoryview, at: int) -> bool:
    """Whether a length with its right checksum is there."""
    header = content[at : at + HEADER_BYTES]
    return len(header) == HEADER_BYTES and masked(crc32c(header[:8])) == int.from_bytes(header[8:], "little")
