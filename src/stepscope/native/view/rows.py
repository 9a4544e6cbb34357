# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Events laid out in rows, by the million: one row for each depth of a track, more where slices overlap.

Columns come and go as buffers of uint8, uint16, uint32 or int64. A slice holds its start, and not its end.
"""

from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor

from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
LANES = 16  # of one depth; what overlaps even more shares the last of them
BLOCK = 16  # events of the order whose longest is known beforehand
NONE = 0xFFFFFFFF
MANY = 1_000_000  # events, from which threads pay
THREADS = 4

_LANES = cython.declare(cython.Py_ssize_t, LANES)
_BLOCK = cython.declare(cython.Py_ssize_t, BLOCK)
_NONE = cython.declare(cython.uint, NONE)
_LAST = cython.declare(cython.longlong, 2**63 - 1)


@cython.final
@cython.cclass
class _Layout:
    """The columns of the events, and for one track at a time when each of its rows gets free and how much it holds."""

    start: cython.const[cython.longlong][::1]
    dur: cython.const[cython.longlong][::1]
    depth: cython.const[cython.ushort][::1]
    lane: cython.uchar[::1]
    order: cython.uint[::1]
    longest: cython.uint[::1]
    free: cython.longlong[::1]
    held: cython.uint[::1]
    place: cython.uint[::1]
    overlaps: cython.uchar[::1]

    def __init__(
        self, depth: object, start: object, dur: object, lane: object, order: object, longest: object
    ) -> None:
        self.depth = depth
        self.start = start
        self.dur = dur
        self.lane = lane
        self.order = order
        self.longest = longest

    def clear(self, depths: int) -> None:
        """Room for the rows of a track of so many depths, all empty."""
        rows = depths * LANES
        self.free = array("q", [-(2**63)]) * rows
        self.held = array("I", bytes(4 * rows))
        self.place = array("I", bytes(4 * rows))
        self.overlaps = bytearray(rows)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _deepest(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.Py_ssize_t:
        found: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        for i in range(first, last):
            if self.depth[i] > found:
                found = self.depth[i]
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _choose(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        """Give each event the first lane of its depth that is free when it starts."""
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t
        lane: cython.Py_ssize_t
        end: cython.longlong
        for i in range(first, last):
            row = self.depth[i] * _LANES
            lane = 0
            while self.free[row] > self.start[i] and lane < _LANES - 1:
                row += 1
                lane += 1
            if self.free[row] > self.start[i]:
                self.overlaps[row] = 1
            end = self.start[i]
            if self.dur[i] > 0:
                end = end + self.dur[i] if end <= _LAST - self.dur[i] else _LAST
            if end > self.free[row]:
                self.free[row] = end
            self.held[row] += 1
            self.lane[i] = cython.cast(cython.uchar, lane)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _put(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        """Write the numbers of the events, one row after the other and in each by start; and the longest of each block."""
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t
        at: cython.Py_ssize_t
        best: cython.uint
        for i in range(first, last):
            row = self.depth[i] * _LANES + self.lane[i]
            at = self.place[row]
            self.place[row] += 1
            self.order[at] = cython.cast(cython.uint, i)
            best = self.longest[at // _BLOCK]
            if best == _NONE or self.dur[i] > self.dur[best]:
                self.longest[at // _BLOCK] = cython.cast(cython.uint, i)
        return 0

    def lay(self, first: int, last: int) -> list[tuple[int, int, bool]]:
        """Lay out the events of one track; its rows as (depth, how many events, whether some overlap)."""
        begin: cython.Py_ssize_t = first
        end: cython.Py_ssize_t = last
        deepest: cython.Py_ssize_t
        with cython.nogil:
            deepest = self._deepest(begin, end)
        self.clear(deepest + 1)
        with cython.nogil:
            self._choose(begin, end)
        at = first
        rows = []
        for row in range((deepest + 1) * LANES):
            self.place[row] = at
            if self.held[row]:
                rows.append((row // LANES, self.held[row], bool(self.overlaps[row])))
                at += self.held[row]
        with cython.nogil:
            self._put(begin, end)
        return rows


def arrange(
    track: cython.const[cython.uint][::1],
    depth: cython.const[cython.ushort][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
) -> tuple[array[int], array[int], list[tuple[int, int, int, bool]]]:
    """The numbers of the events (which come by track and start) row by row, the longest of each BLOCK of them, the rows.

    A row is (track, depth, how many events, whether some of them overlap): by track, then depth, then lane. Lanes
    share out what overlaps, so rows overlap only where more than LANES slices of one depth do. The longest is the first
    of equals, in blocks that lie within one row; others are of no use.
    """
    need_equal(len(track), len(depth), len(start), len(dur))
    n: cython.Py_ssize_t = len(track)
    order = array("I", bytes(4 * n))
    longest = array("I", [NONE]) * ((n + BLOCK - 1) // BLOCK)
    lane = bytearray(n)
    tracks: list[tuple[int, int]] = []
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t
    while first < n:
        last = first
        with cython.nogil:
            while last < n and track[last] == track[first]:
                last += 1
        tracks.append((first, last))
        first = last

    def lay(span: tuple[int, int]) -> list[tuple[int, int, bool]]:
        return _Layout(depth, start, dur, lane, order, longest).lay(*span)

    if n < MANY or not COMPILED:
        laid = [lay(span) for span in tracks]
    else:  # side by side: tracks share nothing but blocks that are of no use
        with ThreadPoolExecutor(THREADS) as pool:
            laid = list(pool.map(lay, tracks))
    rows = [(track[span[0]], *row) for span, found in zip(tracks, laid, strict=True) for row in found]
    return order, longest, rows
