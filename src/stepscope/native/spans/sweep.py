# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""The priority sweep, by the million: each moment of a window belongs to one of the spans that are open then.

Columns come and go as buffers of uint8, uint32 or int64. A span holds its start, and not its end.
"""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal, need_sorted

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NOBODY = 0xFFFFFFFF
PRIORITIES = 64

_NONE = cython.declare(cython.uint, 0xFFFFFFFF)


@cython.final
@cython.cclass
class _Sweep:
    """The open spans of each priority as a stack (`head`, then `below`): the latest to start is on top."""

    start: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    priority: cython.const[cython.uchar][::1]
    head: cython.uint[::1]
    below: cython.uint[::1]
    totals: cython.longlong[::1]
    slice_start: cython.longlong[::1]
    slice_end: cython.longlong[::1]
    slice_priority: cython.uchar[::1]
    slice_owner: cython.uint[::1]
    top: cython.int
    count: cython.Py_ssize_t
    keep: cython.bint

    def __init__(self, start: object, end: object, priority: object, totals: object) -> None:
        self.start = start
        self.end = end
        self.priority = priority
        self.totals = totals
        self.below = array("I", [NOBODY]) * len(self.start)
        self.keep = False

    def keep_slices(self, start: object, end: object, priority: object, owner: object) -> None:
        """From now on write the slices into these columns, which are long enough for them."""
        self.slice_start = start
        self.slice_end = end
        self.slice_priority = priority
        self.slice_owner = owner
        self.keep = True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _open(self, row: cython.uint) -> cython.int:
        level: cython.uchar = self.priority[row]
        self.below[row] = self.head[level]
        self.head[level] = row
        if level > self.top:
            self.top = level
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _owner(self, at: cython.longlong) -> cython.longlong:
        row: cython.uint
        while self.top >= 0:
            row = self.head[self.top]
            if row == _NONE:
                self.top -= 1
            elif self.end[row] <= at:
                self.head[self.top] = self.below[row]
            else:
                return row
        return _NONE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _give(
        self, owner: cython.uint, begin: cython.longlong, end: cython.longlong, more: cython.bint
    ) -> cython.int:
        self.totals[self.priority[owner]] += end - begin
        if not more:
            self.count += 1
        if self.keep:
            if not more:
                self.slice_start[self.count - 1] = begin
                self.slice_priority[self.count - 1] = self.priority[owner]
                self.slice_owner[self.count - 1] = owner
            self.slice_end[self.count - 1] = end
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _sweep(self, lo: cython.longlong, hi: cython.longlong) -> cython.int:
        n: cython.Py_ssize_t = len(self.start)
        row: cython.Py_ssize_t = 0
        at: cython.longlong = lo
        until: cython.longlong
        owner: cython.uint
        before: cython.uint = _NONE
        while at < hi:
            while row < n and self.start[row] <= at:
                self._open(cython.cast(cython.uint, row))
                row += 1
            owner = cython.cast(cython.uint, self._owner(at))
            until = self.start[row] if row < n and self.start[row] < hi else hi
            if owner != _NONE:
                if self.end[owner] < until:
                    until = self.end[owner]
                self._give(owner, at, until, owner == before)
            before = owner
            at = until
        return 0

    def run(self, lo: cython.longlong, hi: cython.longlong) -> int:
        """Sweep the window; return the number of slices."""
        self.head = array("I", [NOBODY]) * PRIORITIES
        self.top = -1
        self.count = 0
        with cython.nogil:
            self._sweep(lo, hi)
        return self.count


def _highest(priority: cython.const[cython.uchar][::1]) -> int:
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(priority)
    found: cython.uchar = 0
    with cython.nogil:
        for i in range(n):
            if priority[i] > found:
                found = priority[i]
    return found


def _new_sweep(start: object, end: object, priority: object, totals: array[int]) -> _Sweep:
    need_equal(len(start), len(end), len(priority))  # type: ignore[arg-type]
    need_sorted(start)
    if _highest(priority) >= PRIORITIES:
        raise ValueError(f"priorities go from 0 to {PRIORITIES - 1}")
    return _Sweep(start, end, priority, totals)


def sweep(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    priority: cython.const[cython.uchar][::1],
    lo: cython.longlong,
    hi: cython.longlong,
) -> array[int]:
    """Nanoseconds of the window [lo, hi) by priority, each given once: to the highest among the open spans.

    Spans are sorted by start. The sum of the result and the time when none is open is exactly hi - lo.
    """
    totals = array("q", [0]) * PRIORITIES
    _new_sweep(start, end, priority, totals).run(lo, hi)
    return totals


def slices(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    priority: cython.const[cython.uchar][::1],
    lo: cython.longlong,
    hi: cython.longlong,
) -> tuple[array[int], array[int], array[int], array[int]]:
    """The pieces that `sweep` adds up: (start, end, priority, row of the owner), in order, gaps left out.

    Among open spans of one priority the latest to start owns the slice, and of those the later row.
    """
    found = _new_sweep(start, end, priority, array("q", [0]) * PRIORITIES)
    count = found.run(lo, hi)
    columns = (
        array("q", [0]) * count,
        array("q", [0]) * count,
        array("B", [0]) * count,
        array("I", [0]) * count,
    )
    found.keep_slices(*columns)
    found.run(lo, hi)
    return columns
