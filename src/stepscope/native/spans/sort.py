# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Events in order: by track, then start, then longer first, and as they were where all that is equal.

Profilers write long stretches in order, so stretches are merged: the fewer there are, the less there is to do.
"""

from __future__ import annotations

from array import array

from stepscope.native.buffers import full_room
from stepscope.native.checks import need_equal
from stepscope.native.order import by_key

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_SHORTEST = cython.declare(cython.Py_ssize_t, 16)


def by_time(
    track: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
    tracks: int,
) -> array[int]:
    """The rows in order; tracks are numbers below `tracks`."""
    need_equal(len(track), len(start), len(dur))
    rows = by_key(track, tracks)
    sorter = _Sorter(rows, track, start, dur)
    sorter.find_stretches()
    while sorter.merge_pairs():
        pass
    return rows


@cython.final
@cython.cclass
class _Sorter:
    """Sorts rows in place."""

    rows: cython.uint[::1]
    spare: cython.uint[::1]
    track: cython.const[cython.uint][::1]
    start: cython.const[cython.longlong][::1]
    dur: cython.const[cython.longlong][::1]
    # Where each stretch that is in order ends.
    ends: cython.uint[::1]
    count: cython.Py_ssize_t

    def __init__(self, rows: object, track: object, start: object, dur: object) -> None:
        self.rows, self.track, self.start, self.dur = rows, track, start, dur
        self.spare = full_room("I", len(self.rows))
        self.ends = full_room("I", len(self.rows) // 16 + 1)
        self.count = 0

    def find_stretches(self) -> None:
        """Cut the rows into stretches that are in order; short ones are made longer."""
        n: cython.Py_ssize_t = len(self.rows)
        begin: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        with cython.nogil:
            while begin < n:
                end = begin + 1
                while end < n and not self._precedes(self.rows[end], self.rows[end - 1]):
                    end += 1
                while end < n and end < begin + _SHORTEST:
                    self._insert(begin, end)
                    end += 1
                self.ends[self.count] = cython.cast(cython.uint, end)
                self.count += 1
                begin = end

    def merge_pairs(self) -> bool:
        """Make one stretch of each two neighbours; False once there is only one."""
        i: cython.Py_ssize_t
        begin: cython.Py_ssize_t = 0
        kept: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(0, self.count, 2):
                if i + 1 < self.count:
                    self._merge(begin, self.ends[i], self.ends[i + 1])
                    self.ends[kept] = self.ends[i + 1]
                else:
                    self.ends[kept] = self.ends[i]
                begin = self.ends[kept]
                kept += 1
        self.count = kept
        return kept > 1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _precedes(self, a: cython.uint, b: cython.uint) -> cython.bint:
        """Whether row a must come before row b."""
        if self.track[a] != self.track[b]:
            return self.track[a] < self.track[b]
        if self.start[a] != self.start[b]:
            return self.start[a] < self.start[b]
        return self.dur[a] > self.dur[b]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _insert(self, begin: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.int:
        """Move the row at `at` to its place among those from `begin` on, which are in order."""
        row: cython.uint = self.rows[at]
        while at > begin and self._precedes(row, self.rows[at - 1]):
            self.rows[at] = self.rows[at - 1]
            at -= 1
        self.rows[at] = row
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _merge(
        self, begin: cython.Py_ssize_t, middle: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        left: cython.Py_ssize_t
        count: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        begin = self._first_after(begin, middle, self.rows[middle])  # what is before stays where it is
        for at in range(begin, middle):
            self.spare[count] = self.rows[at]
            count += 1
        left = 0
        at = begin
        while left < count:
            if middle < end and self._precedes(self.rows[middle], self.spare[left]):
                self.rows[at] = self.rows[middle]
                middle += 1
            else:
                self.rows[at] = self.spare[left]
                left += 1
            at += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _first_after(
        self, low: cython.Py_ssize_t, high: cython.Py_ssize_t, row: cython.uint
    ) -> cython.Py_ssize_t:
        """The first place between low and high, which are in order, whose row must come after this one."""
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if self._precedes(row, self.rows[middle]):
                high = middle
            else:
                low = middle + 1
        return low
