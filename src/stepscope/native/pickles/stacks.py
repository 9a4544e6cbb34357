# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""Stacks of frames, each distinct one once."""

from __future__ import annotations

from stepscope.native.buffers import larger, room

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_ODD = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
# As for strings: stacks that were made to collide are numbered twice, instead of being searched for ever longer.
_FARTHEST = cython.declare(cython.Py_ssize_t, 64)


@cython.final
@cython.cclass
class Stacks:
    """Numbers stacks in the order they are met, by open addressing."""

    def __init__(self) -> None:
        self.frames, self.ends, self.hashes = room("I", 4096), room("q", 1024), room("Q", 1024)
        self.slots, self.mask = room("I", 4096), 4095
        self.used = self.count = 0

    def frames_of(self, number: int) -> list[int]:
        """The frames of a stack, in their order."""
        low = self.ends[number - 1] if number else 0
        return memoryview(self.frames)[low : self.ends[number]].tolist()

    @cython.cfunc
    @cython.exceptval(-9)
    def number(
        self, values: cython.longlong[::1], low: cython.Py_ssize_t, high: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The number of the stack of these frames, equal for equal frames."""
        bits: cython.ulonglong = cython.cast(cython.ulonglong, high - low)
        place: cython.Py_ssize_t
        at: cython.Py_ssize_t
        found: cython.Py_ssize_t
        _step: cython.Py_ssize_t
        for place in range(low, high):
            bits = ((bits ^ cython.cast(cython.ulonglong, values[place])) * _ODD) & _ALL_BITS
            bits ^= bits >> 32
        at = cython.cast(cython.Py_ssize_t, bits & cython.cast(cython.ulonglong, self.mask))
        for _step in range(_FARTHEST):
            found = cython.cast(cython.Py_ssize_t, self.slots[at]) - 1
            if found < 0:
                break
            if self.hashes[found] == bits and self._is(found, values, low, high - low):
                return found
            at = (at + 1) & self.mask
        return self._add(values, low, high, bits)

    @cython.cfunc
    @cython.exceptval(-9)
    def _is(
        self,
        number: cython.Py_ssize_t,
        values: cython.longlong[::1],
        low: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.bint:
        begin: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        if number > 0:
            begin = cython.cast(cython.Py_ssize_t, self.ends[number - 1])
        if self.ends[number] - begin != count:
            return False
        for i in range(count):
            if self.frames[begin + i] != values[low + i]:
                return False
        return True

    @cython.cfunc
    @cython.exceptval(-9)
    def _add(
        self,
        values: cython.longlong[::1],
        low: cython.Py_ssize_t,
        high: cython.Py_ssize_t,
        bits: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        number: cython.Py_ssize_t = self.count
        place: cython.Py_ssize_t
        if self.used + high - low > len(self.frames):
            self.frames = larger(memoryview(self.frames), "I", 2 * (self.used + high - low))
        if number >= len(self.ends):
            self._grow(2 * number)
        for place in range(low, high):
            self.frames[self.used + place - low] = cython.cast(cython.uint, values[place])
        self.used += high - low
        self.ends[number] = self.used
        self.hashes[number] = bits
        self.count = number + 1
        self._place(number)
        return number

    def _grow(self, count: int) -> None:
        self.ends = larger(memoryview(self.ends), "q", count)
        self.hashes = larger(memoryview(self.hashes), "Q", count)
        self.slots, self.mask = room("I", 4 * count), 4 * count - 1
        for number in range(self.count):
            self._place(number)

    @cython.cfunc
    @cython.exceptval(-9)
    def _place(self, number: cython.Py_ssize_t) -> cython.int:
        """Enter a stack in the table, if there is a slot near its own."""
        at: cython.Py_ssize_t = cython.cast(
            cython.Py_ssize_t, self.hashes[number] & cython.cast(cython.ulonglong, self.mask)
        )
        _step: cython.Py_ssize_t
        for _step in range(_FARTHEST):
            if self.slots[at] == 0:
                self.slots[at] = cython.cast(cython.uint, number + 1)
                return 0
            at = (at + 1) & self.mask
        return 0
