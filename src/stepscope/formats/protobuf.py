"""Protocol-buffer messages, one level at a time, from untrusted bytes."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.trace.problems import Problem, Problems, problem

Value = int | memoryview

_LONGEST_VARINT = 10
_LAST_FIELD = (1 << 29) - 1
_FIXED_BYTES = {1: 8, 5: 4}


class _Damaged(Exception):
    """The bytes are not a message."""


class _Cut(Exception):
    """The bytes of a field go on past the end of its message."""

    def __init__(self, at: int) -> None:
        self.at = at


def fields(message: memoryview, problems: Problems, keep_cut: bool = False) -> Iterator[tuple[int, Value]]:
    """The fields of a message as (number, value): bytes as a view, all else as an unsigned number.

    At the first byte that cannot be read the message ends, and `problems` counts it. Bytes that would go on past the
    end of the message are left out, or with `keep_cut` given as far as they are there. Nothing is read deeper
    than it is asked for, so bytes that nest without end cost no more than others.
    """
    at, stop = 0, len(message)
    while at < stop:
        try:
            key, at = _varint(message, at)
            if not 0 < key >> 3 <= _LAST_FIELD:
                raise _Damaged
            value, at = _value(message, at, key & 7)
        except _Cut as cut:
            problems.add(_damaged_message())
            if keep_cut:
                yield key >> 3, message[cut.at :]
            return
        except _Damaged:
            problems.add(_damaged_message())
            return
        yield key >> 3, value


def signed(value: int) -> int:
    """The number as an int64, which is how negative ones are written."""
    return value - (1 << 64) if value >> 63 else value


def text(value: Value) -> str:
    """The bytes as text; a number, where text belongs, is none."""
    return "" if isinstance(value, int) else str(value, "utf-8", "replace")


def _value(message: memoryview, at: int, wire_type: int) -> tuple[Value, int]:
    if wire_type == 0:
        return _varint(message, at)
    if wire_type == 2:
        size, at = _varint(message, at)
    elif wire_type in _FIXED_BYTES:
        size = _FIXED_BYTES[wire_type]
    else:
        raise _Damaged
    if size > len(message) - at:
        raise _Cut(at) if wire_type == 2 else _Damaged
    found = message[at : at + size]
    return (found if wire_type == 2 else int.from_bytes(found, "little")), at + size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    if at < len(message) and message[at] < 0x80:
        return message[at], at + 1
    found = 0
    for count, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        found |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return found & ((1 << 64) - 1), at + count + 1
    raise _Damaged


def _damaged_message() -> Problem:
    return problem("damaged-message", "{count} messages end early or have unreadable bytes.")
