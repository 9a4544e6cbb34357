"""Memory for the hot loops: zeroed columns to fill, and bytes seen eight at a time."""

from __future__ import annotations

import sys
from array import array
from mmap import mmap
from typing import Literal

Code = Literal["B", "I", "i", "q"]

_SMALL = 1 << 16


def room(code: Code, count: int) -> memoryview:
    """Zeroed room for `count` items; pages that are never written cost nothing."""
    size = max(count, 1) * array(code).itemsize
    return memoryview(bytearray(size) if size < _SMALL else mmap(-1, size)).cast(code)


def larger(old: memoryview, code: Code, count: int) -> memoryview:
    """Room for `count` items that begins with the old ones."""
    new = room(code, count)
    new[: len(old)] = old
    return new


def words_of(buf: memoryview) -> memoryview:
    """The bytes as whole words, the first byte lowest; no words where the machine reads them the other way round."""
    size = len(buf) & ~7 if sys.byteorder == "little" else 0
    return buf[:size].cast("Q")
