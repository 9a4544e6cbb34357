# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Which frames spend most of their self time in long intervals between ops and calls, in one pass over the threads."""

from __future__ import annotations

from stepscope.native.buffers import room
from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)


@cython.final
@cython.cclass
class _Intervals:
    """Walks over the self time of all rows, and keeps the pieces of the interval that is open.

    An interval lasts from the end of one op or call to the start of the next one on the same track. What a row has in long ones counts
    for it, what it has in short ones against it.
    """

    track: cython.const[cython.uint][::1]
    start: cython.const[cython.longlong][::1]
    dur: cython.const[cython.longlong][::1]
    is_frame: cython.const[cython.uchar][::1]
    longest: cython.longlong
    open_rows: cython.uint[::1]
    piece_row: cython.uint[::1]
    piece_ns: cython.longlong[::1]
    balance: cython.longlong[::1]
    pieces: cython.Py_ssize_t
    is_new: cython.bint  # no op or call has come before on this track
    since: cython.longlong
    until: cython.longlong

    def __init__(self, track: object, start: object, dur: object, is_frame: object, longest: int) -> None:
        self.track, self.start, self.dur, self.is_frame = track, start, dur, is_frame
        self.longest = longest
        n: cython.Py_ssize_t = len(self.start)
        self.open_rows = room("I", n)
        self.piece_row = room("I", 2 * n)
        self.piece_ns = room("q", 2 * n)
        self.balance = room("q", n)
        self.pieces = 0
        self.is_new = True
        self.since = self.until = 0

    def run(self) -> bytearray:
        """Whether each row has more of its time in long intervals than in others."""
        n: cython.Py_ssize_t = len(self.start)
        i: cython.Py_ssize_t
        found = bytearray(n)
        out: cython.uchar[::1] = found
        with cython.nogil:
            self._walk(n)
            for i in range(n):
                out[i] = self.balance[i] > 0
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _walk(self, n: cython.Py_ssize_t) -> cython.int:
        """The segments of all tracks in order, each owned by the innermost row, as in `spans.segments`."""
        depth: cython.Py_ssize_t = 0
        cursor: cython.longlong = 0
        end: cython.longlong
        top: cython.uint
        i: cython.Py_ssize_t
        for i in range(n + 1):
            while depth > 0:
                top = self.open_rows[depth - 1]
                end = self.start[top] + self.dur[top]
                if i < n and self.track[i] == self.track[top] and end > self.start[i]:
                    break
                if cursor < end:
                    self._piece(top, cursor, end)
                    cursor = end
                depth -= 1
            if i == n or (i > 0 and self.track[i] != self.track[i - 1]):
                self._close()
                self.is_new = True
            if i == n:
                break
            if self.dur[i] <= 0:
                continue
            if depth > 0 and cursor < self.start[i]:
                self._piece(self.open_rows[depth - 1], cursor, self.start[i])
            if depth == 0 or cursor < self.start[i]:
                cursor = self.start[i]
            self.open_rows[depth] = cython.cast(cython.uint, i)
            depth += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _piece(self, row: cython.uint, start: cython.longlong, end: cython.longlong) -> cython.int:
        if not self.is_frame[row]:
            self._close()
            self.is_new = False
            self.since = end
            return 0
        if self.is_new:
            self.is_new = False
            self.since = start
        self.piece_row[self.pieces] = row
        self.piece_ns[self.pieces] = end - start
        self.pieces += 1
        self.until = end
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _close(self) -> cython.int:
        """The interval is over: its pieces are judged by its length."""
        i: cython.Py_ssize_t
        is_long: cython.bint = self.until - self.since >= self.longest
        for i in range(self.pieces):
            if is_long:
                self.balance[self.piece_row[i]] += self.piece_ns[i]
            else:
                self.balance[self.piece_row[i]] -= self.piece_ns[i]
        self.pieces = 0
        return 0


def computing(
    track: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
    is_frame: cython.const[cython.uchar][::1],
    longest: int,
) -> bytearray:
    """For each row, sorted by track, start and longer first, 1 if it is a frame with most self time in intervals of `longest` or more.

    Any other row ends an interval; moments without a row do not.
    """
    need_equal(len(track), len(start), len(dur), len(is_frame))
    return _Intervals(track, start, dur, is_frame, longest).run()
