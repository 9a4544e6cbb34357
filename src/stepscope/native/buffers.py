"""Memory for the hot loops: zeroed columns to fill, and bytes seen eight at a time."""

from __future__ import annotations

import mmap
import sys
from array import array
from typing import Literal

Code = Literal["B", "H", "I", "Q", "i", "q"]

_SMALL = 1 << 16
_LARGE = 1 << 22
_FLAGS = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}


def room(code: Code, count: int) -> memoryview:
    """Zeroed room for `count` items; pages that are never written cost nothing."""
    return memoryview(_pages(code, count)).cast(code)


def full_room(code: Code, count: int) -> memoryview:
    """Zeroed room that is going to be written from end to end: in large pages, where the system has them.

    Handing out pages one by one costs more than filling them.
    """
    pages = _pages(code, count)
    if isinstance(pages, mmap.mmap) and len(pages) >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages).cast(code)


def column(code: Code, count: int) -> memoryview:
    """Exactly `count` zeroed items that are going to be written from end to end."""
    return full_room(code, count)[:count]


def _pages(code: Code, count: int) -> bytearray | mmap.mmap:
    size = max(count, 1) * array(code).itemsize
    return bytearray(size) if size < _SMALL else mmap.mmap(-1, size, **_FLAGS)


def larger(old: memoryview, code: Code, count: int) -> memoryview:
    """Room for `count` items that begins with the old ones."""
    new = room(code, count)
    new[: len(old)] = old
    return new


def words_of(buf: memoryview) -> memoryview:
    """The bytes as whole words, the first byte lowest; no words where the machine reads them the other way round."""
    size = len(buf) & ~7 if sys.byteorder == "little" else 0
    return buf[:size].cast("Q")
