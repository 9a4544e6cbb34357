# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Events on their tracks, by the million: nesting, self time, the event around a moment.

Columns come and go as buffers of uint8, uint16, uint32 or int64. An event's end is its start plus its duration.
"""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NO_PARENT = 0xFFFFFFFF

_SHORT_WALK = cython.declare(cython.int, 256)
_NONE = cython.declare(cython.uint, 0xFFFFFFFF)
_LAST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end_of(start: cython.longlong, dur: cython.longlong) -> cython.longlong:
    if dur <= 0:
        return start
    return start + dur if start <= _LAST - dur else _LAST


def nest(
    track: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
    flat: cython.const[cython.uchar][::1],
    parent: cython.uint[::1],
    depth: cython.ushort[::1],
) -> tuple[int, int]:
    """Write each event's parent and depth; return (partial overlaps, greatest depth).

    Events are sorted by track, start and longer first; `flat` marks the tracks that do not nest. The parent is the
    latest earlier event of the track that lasts at least as long and has not ended when the event starts. A partial
    overlap is an event that starts inside an open one and outlives it: it closes that one, and is not its child.

    The open events are the chain of parents of the row before. One that is outlived can never again be the latest
    to hold anything, so each event leaves the chain once, and all walks together are linear on any input.
    """
    need_equal(len(start), len(track), len(dur), len(parent), len(depth))
    n: cython.Py_ssize_t = len(start)
    i: cython.Py_ssize_t
    up: cython.uint
    begin: cython.longlong
    end: cython.longlong
    above: cython.longlong
    level: cython.uint
    outlives: cython.bint
    overlaps: cython.Py_ssize_t = 0
    deepest: cython.uint = 0
    unsorted: cython.bint = False
    with cython.nogil:
        for i in range(n):
            up = _NONE
            level = 0
            if i > 0 and track[i] <= track[i - 1]:
                if track[i] < track[i - 1] or start[i] < start[i - 1]:
                    unsorted = True
                    break
                if not flat[track[i]]:
                    up = i - 1
            begin = start[i]
            end = _end_of(begin, dur[i])
            outlives = False
            while up != _NONE:
                above = _end_of(start[up], dur[up])
                if above > begin:
                    if above >= end:
                        level = depth[up] + 1
                        break
                    outlives = True
                up = parent[up]
            if level > 65535:
                level = 65535
            if level > deepest:
                deepest = level
            overlaps += outlives
            parent[i] = up
            depth[i] = level
    if unsorted:
        raise ValueError("the events are not sorted by track and start")
    return overlaps, deepest


def self_times(
    parent: cython.const[cython.uint][::1],
    dur: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
) -> int:
    """Write each duration less those of its direct children; return how many fell below 0 and were set to 0."""
    need_equal(len(dur), len(parent), len(out))
    n: cython.Py_ssize_t = len(dur)
    i: cython.Py_ssize_t
    up: cython.uint
    clamped: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            out[i] = dur[i]
        for i in range(n):
            up = parent[i]
            # Once below zero it stays there: subtracting on could wrap round.
            if up != _NONE and out[up] >= 0:
                out[up] -= dur[i]
        for i in range(n):
            if out[i] < 0:
                out[i] = 0
                clamped += 1
    return clamped


@cython.final
@cython.cclass
class _Search:
    """Looks for the innermost event around a moment: the last to start before it, then up its parents."""

    start: cython.const[cython.longlong][::1]
    dur: cython.const[cython.longlong][::1]
    parent: cython.const[cython.uint][::1]
    jump: cython.uint[::1]
    level: cython.uint[::1]
    jumps: cython.bint
    gave_up: cython.bint

    def __init__(self, start: object, dur: object, parent: object) -> None:
        self.start = start
        self.dur = dur
        self.parent = parent
        self.jump = array("I")
        self.level = array("I")
        self.jumps = False
        self.gave_up = False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    def _last_started(
        self, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, time: cython.longlong
    ) -> cython.Py_ssize_t:
        low: cython.Py_ssize_t = first
        middle: cython.Py_ssize_t
        while low < stop:
            middle = low + (stop - low) // 2
            if self.start[middle] <= time:
                low = middle + 1
            else:
                stop = middle
        return low - 1 if low > first else -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    def _still_open(self, row: cython.Py_ssize_t, time: cython.longlong) -> cython.Py_ssize_t:
        steps: cython.int = 0
        up: cython.uint
        while _end_of(self.start[row], self.dur[row]) <= time:
            up = self.parent[row]
            if self.jumps and _end_of(self.start[self.jump[row]], self.dur[self.jump[row]]) <= time:
                up = self.jump[row]
            if up >= row:
                return -1
            row = up
            steps += 1
            if steps > _SHORT_WALK and not self.jumps:
                self.gave_up = True
                return -1
        return row

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-2)
    def _find(
        self, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, time: cython.longlong
    ) -> cython.Py_ssize_t:
        row: cython.Py_ssize_t = self._last_started(first, stop, time)
        if row < 0 or self.start[row] == time:
            return row
        return self._still_open(row, time)

    def build_jumps(self) -> None:
        """Give each event a second, far ancestor, so that a walk of any depth takes a logarithm of steps.

        Ends only grow along the parents, which is what lets a walk skip: jumps pair up equal distances,
        as the digits of a skew-binary number do.
        """
        n: cython.Py_ssize_t = len(self.start)
        row: cython.Py_ssize_t
        up: cython.uint
        far: cython.uint
        self.jump = array("I", [0]) * n
        self.level = array("I", [0]) * n
        with cython.nogil:
            for row in range(n):
                up = self.parent[row]
                if up >= row:
                    self.jump[row] = cython.cast(cython.uint, row)
                    continue
                self.level[row] = self.level[up] + 1
                far = self.jump[up]
                if self.level[up] - self.level[far] == self.level[far] - self.level[self.jump[far]]:
                    self.jump[row] = self.jump[far]
                else:
                    self.jump[row] = up
        self.jumps = True
        self.gave_up = False

    def run(
        self,
        track_first: cython.const[cython.uint][::1],
        query_track: cython.const[cython.uint][::1],
        query_time: cython.const[cython.longlong][::1],
        out: cython.uint[::1],
    ) -> bool:
        """Answer all queries; False if one met a nesting too deep to walk without jumps."""
        n: cython.Py_ssize_t = len(query_time)
        tracks: cython.Py_ssize_t = len(track_first) - 1
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t
        with cython.nogil:
            for i in range(n):
                row = -1
                if query_track[i] < tracks:
                    row = self._find(
                        track_first[query_track[i]], track_first[query_track[i] + 1], query_time[i]
                    )
                out[i] = cython.cast(cython.uint, row) if row >= 0 else _NONE
        return not self.gave_up


def innermost(
    track_first: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
    parent: cython.const[cython.uint][::1],
    query_track: cython.const[cython.uint][::1],
    query_time: cython.const[cython.longlong][::1],
) -> array[int]:
    """For each query the innermost event of the track that holds the moment, or NO_PARENT.

    One that starts exactly then comes first, even without a duration. The rows of track t are
    track_first[t] to track_first[t + 1]; rows and parents are as `nest` wants and gives them.
    """
    need_equal(len(start), len(dur), len(parent))
    need_equal(len(query_track), len(query_time))
    found = array("I", [NO_PARENT]) * len(query_time)
    search = _Search(start, dur, parent)
    if not search.run(track_first, query_track, query_time, found):
        search.build_jumps()
        search.run(track_first, query_track, query_time, found)
    return found
