# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""What a thread was doing at each moment: its timeline cut into segments, each owned by the innermost event.

Also: the next event of a track after a moment.
"""

from __future__ import annotations

from stepscope.native.buffers import column, room
from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF


def segments(
    track: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
    wanted: cython.const[cython.uchar][::1],
) -> tuple[memoryview, memoryview, memoryview]:
    """Starts, ends and owning rows of all segments of the wanted rows, sorted by track, start and longer first.

    Where two events overlap without nesting, the later one owns what they share. Moments without an event, and
    events without a duration, own nothing.
    """
    need_equal(len(track), len(start), len(dur), len(wanted))
    n: cython.Py_ssize_t = len(start)
    starts, ends, rows = room("q", 2 * n), room("q", 2 * n), room("I", 2 * n)
    out_start: cython.longlong[::1] = starts
    out_end: cython.longlong[::1] = ends
    out_row: cython.uint[::1] = rows
    stack: cython.uint[::1] = room("I", n)
    depth: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    cursor: cython.longlong = 0
    end: cython.longlong
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n + 1):
            if i < n and (not wanted[i] or dur[i] <= 0):
                continue
            # At a new track, and at the very end, everything still open is closed.
            while depth > 0:
                end = start[stack[depth - 1]] + dur[stack[depth - 1]]
                if i < n and track[i] == track[stack[depth - 1]] and end > start[i]:
                    break
                if cursor < end:
                    out_start[count] = cursor
                    out_end[count] = end
                    out_row[count] = stack[depth - 1]
                    count += 1
                    cursor = end
                depth -= 1
            if i == n:
                break
            if depth > 0 and cursor < start[i]:
                out_start[count] = cursor
                out_end[count] = start[i]
                out_row[count] = stack[depth - 1]
                count += 1
            if depth == 0 or cursor < start[i]:
                cursor = start[i]
            stack[depth] = cython.cast(cython.uint, i)
            depth += 1
    return starts[:count], ends[:count], rows[:count]


def cut(
    span_track: cython.const[cython.uint][::1],
    span_start: cython.const[cython.longlong][::1],
    span_end: cython.const[cython.longlong][::1],
    track_first: cython.const[cython.uint][::1],
    segment_start: cython.const[cython.longlong][::1],
    segment_end: cython.const[cython.longlong][::1],
    segment_row: cython.const[cython.uint][::1],
    longer_than: int = 0,
) -> tuple[memoryview, memoryview, memoryview, memoryview, memoryview]:
    """Each span cut by the segments of its track: span, start, end, owner (NONE where no segment lies) and `place`.

    The segments of track t are track_first[t] to track_first[t + 1]. The pieces of a span cover it exactly, but for those
    that are not `longer_than` so much. `place` is the segment that owns a piece, or for a piece that none owns, the one
    after it (perhaps of the next track).
    """
    cutter = _Cutter(longer_than)
    cutter.spans(span_track, span_start, span_end)
    cutter.segments(track_first, segment_start, segment_end, segment_row)
    return cutter.pieces()


@cython.final
@cython.cclass
class _Cutter:
    """Walks over the spans twice: to count the pieces, then to write them down."""

    track: cython.const[cython.uint][::1]
    start: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    first: cython.const[cython.uint][::1]
    segment_start: cython.const[cython.longlong][::1]
    segment_end: cython.const[cython.longlong][::1]
    segment_row: cython.const[cython.uint][::1]
    none: cython.uint
    tracks: cython.Py_ssize_t
    longer_than: cython.longlong
    is_writing: cython.bint
    count: cython.Py_ssize_t
    out_span: cython.uint[::1]
    out_start: cython.longlong[::1]
    out_end: cython.longlong[::1]
    out_row: cython.uint[::1]
    out_place: cython.uint[::1]

    def __init__(self, longer_than: int) -> None:
        self.none = NONE
        self.longer_than = longer_than

    def spans(self, track: object, start: object, end: object) -> None:
        """What to cut."""
        self.track, self.start, self.end = track, start, end
        need_equal(len(self.track), len(self.start), len(self.end))

    def segments(self, first: object, start: object, end: object, row: object) -> None:
        """What to cut it by."""
        self.first, self.segment_start, self.segment_end, self.segment_row = first, start, end, row
        need_equal(len(self.segment_start), len(self.segment_end), len(self.segment_row))
        self.tracks = len(self.first) - 1
        # From here on, nothing is checked again.
        if any(self.first[track] > len(self.segment_start) for track in range(self.tracks + 1)):
            raise ValueError("a track has segments that there are not")

    def pieces(self) -> tuple[memoryview, memoryview, memoryview, memoryview, memoryview]:
        """Span, start, end, owner and place."""
        self.is_writing = False
        self._walk()
        found = (
            column("I", self.count),
            column("q", self.count),
            column("q", self.count),
            column("I", self.count),
            column("I", self.count),
        )
        self.out_span, self.out_start, self.out_end, self.out_row, self.out_place = found
        self.is_writing = True
        self._walk()
        return found

    @cython.cfunc
    def _walk(self) -> cython.void:
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.start)
        self.count = 0
        with cython.nogil:
            for i in range(n):
                self._span(i)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # what `first` says was checked, and there is room for what was counted
    @cython.exceptval(check=False)
    def _span(self, i: cython.Py_ssize_t) -> cython.void:
        """The pieces of one span: owned ones, and the gaps between them."""
        cursor: cython.longlong = self.start[i]
        end: cython.longlong = self.end[i]
        until: cython.longlong
        is_owned: cython.bint
        s: cython.Py_ssize_t = 0
        last: cython.Py_ssize_t = 0
        if self.track[i] < self.tracks:
            last = self.first[self.track[i] + 1]
            s = self._first_ending_after(self.first[self.track[i]], last, cursor)
        while cursor < end:
            is_owned = s < last and self.segment_start[s] <= cursor
            until = end
            if is_owned and self.segment_end[s] < end:
                until = self.segment_end[s]
            elif not is_owned and s < last and self.segment_start[s] < end:
                until = self.segment_start[s]
            if until - cursor > self.longer_than:
                if self.is_writing:
                    self.out_span[self.count] = cython.cast(cython.uint, i)
                    self.out_start[self.count] = cursor
                    self.out_end[self.count] = until
                    self.out_row[self.count] = self.segment_row[s] if is_owned else self.none
                    self.out_place[self.count] = cython.cast(cython.uint, s)
                self.count += 1
            s += is_owned
            cursor = until

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # what `first` says was checked, and there is room for what was counted
    @cython.exceptval(check=False)
    def _first_ending_after(
        self, low: cython.Py_ssize_t, high: cython.Py_ssize_t, time: cython.longlong
    ) -> cython.Py_ssize_t:
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if self.segment_end[middle] > time:
                high = middle
            else:
                low = middle + 1
        return low


def next_start(
    first: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    query_track: cython.const[cython.uint][::1],
    query_time: cython.const[cython.longlong][::1],
) -> memoryview:
    """For each query the first row of its track that starts at or after the time, or NONE.

    The rows of track t are first[t] to first[t + 1], in order of their starts.
    """
    n: cython.Py_ssize_t = len(query_time)
    result = column("I", n)
    out: cython.uint[::1] = result
    none: cython.uint = NONE
    tracks: cython.Py_ssize_t = len(first) - 1
    i: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            out[i] = none
            if query_track[i] >= tracks:
                continue
            low = first[query_track[i]]
            high = first[query_track[i] + 1]
            while low < high:
                middle = (low + high) // 2
                if start[middle] < query_time[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < first[query_track[i] + 1]:
                out[i] = cython.cast(cython.uint, low)
    return result
