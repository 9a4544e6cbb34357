# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Lanes for spans that overlap without nesting, by the million.

Columns come and go as buffers of uint32 or int64. A span holds its start, and not its end.
"""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal, need_sorted

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_FREE = -0x8000000000000000


@cython.final
@cython.cclass
class _Lanes:
    """When each lane gets free, as the leaves of a tree whose inner nodes hold the earliest of their two."""

    start: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    free: cython.longlong[::1]
    lanes: cython.Py_ssize_t

    def __init__(self, start: object, end: object) -> None:
        self.start = start
        self.end = end
        self.lanes = 1
        self.free = array("q", [_FREE]) * 2

    def double(self) -> None:
        """Make room for twice the lanes; the new ones are free from the beginning of time."""
        old = self.free
        lane: cython.Py_ssize_t
        node: cython.Py_ssize_t
        self.lanes *= 2
        self.free = array("q", [_FREE]) * (2 * self.lanes)
        for lane in range(self.lanes // 2):
            self.free[self.lanes + lane] = old[self.lanes // 2 + lane]
        for node in range(self.lanes - 1, 0, -1):
            self.free[node] = min(self.free[2 * node], self.free[2 * node + 1])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _lowest_free(self, time: cython.longlong) -> cython.Py_ssize_t:
        node: cython.Py_ssize_t = 1
        while node < self.lanes:
            node *= 2
            if self.free[node] > time:
                node += 1
        return node - self.lanes

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _occupy(self, lane: cython.Py_ssize_t, until: cython.longlong) -> cython.int:
        node: cython.Py_ssize_t = lane + self.lanes
        self.free[node] = until
        while node > 1:
            node //= 2
            left: cython.longlong = self.free[2 * node]
            right: cython.longlong = self.free[2 * node + 1]
            self.free[node] = left if left < right else right
        return 0

    def fill(self, first: cython.Py_ssize_t, out: cython.uint[::1]) -> int:
        """Give lanes to the rows from `first` on; return the row that found none, or the number of rows."""
        row: cython.Py_ssize_t = first
        lane: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.start)
        with cython.nogil:
            while row < n and self.free[1] <= self.start[row]:
                lane = self._lowest_free(self.start[row])
                self._occupy(lane, self.end[row])
                out[row] = cython.cast(cython.uint, lane)
                row += 1
        return row


def lanes(start: cython.const[cython.longlong][::1], end: cython.const[cython.longlong][::1]) -> array[int]:
    """For each span (sorted by start) the lowest lane that is free from its start on."""
    need_equal(len(start), len(end))
    need_sorted(start)
    found = array("I", [0]) * len(start)
    tree = _Lanes(start, end)
    row = tree.fill(0, found)
    while row < len(start):
        tree.double()
        row = tree.fill(row, found)
    return found
