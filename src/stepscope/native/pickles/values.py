# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""The stack and the memo of a pickle: a value is a kind and a number, whatever it is."""

from __future__ import annotations

from random import SystemRandom
from typing import Any

from stepscope.native.buffers import larger, room

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, values.pxd imports it
    from stepscope.native.strings import Strings

COMPILED = bool(cython.compiled)

# What a value is; snapshot.py knows more kinds.
_INT = cython.declare(cython.uchar, 1)
_TEXT = cython.declare(cython.uchar, 2)
_HIGHEST = cython.declare(cython.Py_ssize_t, 1 << 18)  # of the stack; pickles of snapshots need some thousand


class Unusual(Exception):
    """Something that snapshots do not have, or that is not as they have it."""


class Numbered:
    """A list that is in the columns, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Stack(Numbered):
    """A list of frames, by the number of the stack."""


class Rows(Numbered):
    """A list of events, by the number of the list."""


@cython.cclass
class Values:
    """Reads arguments of opcodes onto the stack. `known` are texts that get the first numbers."""

    def __init__(self, data: Any, known: tuple[bytes, ...]) -> None:
        self.data = data
        self.at = self.top = self.memo_count = 0
        self.end = len(self.data)
        self.strings = Strings(SystemRandom().getrandbits(63))
        for text in known:
            self.strings.code_of(text)
        self.strings.look_at(memoryview(data))
        self.tags, self.values = room("B", 1024), room("q", 1024)
        self.memo_tags, self.memo_values = room("B", 1024), room("q", 1024)

    def place(self) -> int:
        """How far it has read."""
        return self.at

    def text(self, code: int) -> str:
        """The text of a number."""
        return self.strings.text(code).decode("utf-8", "surrogatepass")

    @cython.final
    @cython.cfunc
    @cython.exceptval(-9)
    def _number_at(self, width: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """An argument of an opcode: `width` bytes, the lowest first."""
        found: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        if self.at + width > self.end:
            raise Unusual
        for i in range(width):
            found |= cython.cast(cython.Py_ssize_t, self.data[self.at + i]) << (8 * i)
        self.at += width
        return found

    @cython.final
    @cython.cfunc
    @cython.exceptval(-9)
    def _push(self, tag: cython.uchar, value: cython.longlong) -> cython.int:
        if self.top >= len(self.tags):
            if self.top >= _HIGHEST:
                raise Unusual
            self.tags = larger(memoryview(self.tags), "B", 2 * self.top)
            self.values = larger(memoryview(self.values), "q", 2 * self.top)
        self.tags[self.top] = tag
        self.values[self.top] = value
        self.top += 1
        return 0

    @cython.final
    @cython.cfunc
    @cython.exceptval(-9)
    def _push_int(self, width: cython.Py_ssize_t, signed: cython.bint) -> cython.int:
        bits: cython.ulonglong = 0
        sign: cython.ulonglong = 1
        i: cython.Py_ssize_t
        if width > 8 or self.at + width > self.end:
            raise Unusual
        for i in range(width):
            bits |= cython.cast(cython.ulonglong, self.data[self.at + i]) << (8 * i)
        self.at += width
        if signed and width > 0:
            sign = sign << (8 * width - 1)
            if bits & sign:
                return self._push(_INT, -1 - cython.cast(cython.longlong, bits ^ (sign | (sign - 1))))
        return self._push(_INT, cython.cast(cython.longlong, bits))

    @cython.final
    @cython.cfunc
    @cython.exceptval(-9)
    def _push_text(self, width: cython.Py_ssize_t) -> cython.int:
        count: cython.Py_ssize_t = self._number_at(width)
        if count > self.end - self.at:
            raise Unusual
        code: cython.Py_ssize_t = self.strings.intern(self.at, self.at + count, False, -1)
        self.at += count
        return self._push(_TEXT, code)

    @cython.final
    @cython.cfunc
    @cython.exceptval(-9)
    def _put(self, where: cython.Py_ssize_t) -> cython.int:
        if where != self.memo_count or self.top < 1 or 4 * where > self.end + (1 << 16):
            raise Unusual
        if where >= len(self.memo_tags):
            self.memo_tags = larger(memoryview(self.memo_tags), "B", 2 * where)
            self.memo_values = larger(memoryview(self.memo_values), "q", 2 * where)
        self.memo_tags[where] = self.tags[self.top - 1]
        self.memo_values[where] = self.values[self.top - 1]
        self.memo_count = where + 1
        return 0

    @cython.final
    @cython.cfunc
    @cython.exceptval(-9)
    def _get(self, where: cython.Py_ssize_t) -> cython.int:
        if where >= self.memo_count:
            raise Unusual
        return self._push(self.memo_tags[where], self.memo_values[where])
