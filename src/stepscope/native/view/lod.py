# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Level of detail: what a screen can show of a row with millions of slices, or of a counter with millions of samples.

Time is cut into buckets of 2**bits ns. A slice at least as long as a bucket is given itself, wherever it reaches into
the window. Of the shorter ones that begin in a bucket the longest is given (the first of equals) and their number.
Columns come and go as buffers of uint8, int32, uint32, int64 or float64.
"""

from __future__ import annotations

from array import array
from typing import Any

from stepscope.native.checks import need_equal
from stepscope.native.view.rows import BLOCK

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
MOST_BUCKETS = 4096
NO_STYLE = 255

_BLOCK = cython.declare(cython.Py_ssize_t, BLOCK)
_LAST = cython.declare(cython.longlong, 2**63 - 1)
_FURTHEST = cython.declare(cython.longlong, 2**30)  # in units from the window's start: far outside of it


@cython.final
@cython.cclass
class Rows:
    """Slices in rows, as `lod_rows.arrange` gives them; `first` is where each row begins in the order, and the end."""

    start: cython.const[cython.longlong][::1]
    dur: cython.const[cython.longlong][::1]
    order: cython.const[cython.uint][::1]
    first: cython.const[cython.uint][::1]
    overlaps: cython.const[cython.uchar][::1]
    longest: cython.const[cython.uint][::1]

    def __init__(self, start: Any, dur: Any, order: Any, longest: Any, first: Any, overlaps: Any) -> None:
        need_equal(len(start), len(dur), len(order))
        need_equal(len(first), len(overlaps) + 1)
        need_equal(len(longest), (len(order) + BLOCK - 1) // BLOCK)
        self.start = start
        self.dur = dur
        self.order = order
        self.first = first
        self.overlaps = overlaps
        self.longest = longest

    def size(self) -> int:
        """How many rows there are."""
        return len(self.overlaps)

    def place(self, row: int, moment: int) -> int:
        """The first place in the row whose slice starts at the moment or later; the row's end if none does."""
        low: cython.Py_ssize_t = self.first[row]
        high: cython.Py_ssize_t = self.first[row + 1]
        at: cython.longlong = moment
        with cython.nogil:
            low = self._lower(low, high, at)
        return low

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _lower(
        self, low: cython.Py_ssize_t, high: cython.Py_ssize_t, at: cython.longlong
    ) -> cython.Py_ssize_t:
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) >> 1
            if self.start[self.order[middle]] < at:
                low = middle + 1
            else:
                high = middle
        return low

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _end(self, slice_: cython.uint) -> cython.longlong:
        begin: cython.longlong = self.start[slice_]
        length: cython.longlong = self.dur[slice_]
        if length <= 0:
            return begin
        return begin + length if begin <= _LAST - length else _LAST


@cython.final
@cython.cclass
class Window:
    """Some buckets of time, and the items found in the row that was asked for last.

    Items have a start and a duration in units of 2**unit_bits ns from the begin of the window (as far as they can be seen
    from there), the number of the slice, and how many slices it stands for. A row that does not overlap gives at most two items a bucket and one more. In others, what is too much for the
    room is counted in the last item.
    """

    begin: cython.longlong
    end: cython.longlong
    bits: cython.int
    unit_bits: cython.int
    room: cython.Py_ssize_t
    count: cython.Py_ssize_t
    bucket: cython.longlong
    best: cython.uint
    held: cython.uint
    start_column: Any
    dur_column: Any
    id_column: Any
    count_column: Any
    starts: cython.int[::1]
    durs: cython.uint[::1]
    ids: cython.uint[::1]
    counts: cython.uint[::1]

    def __init__(self, begin: int, bits: int, buckets: int) -> None:
        if not 0 < buckets <= MOST_BUCKETS or not 0 <= bits <= 48:
            raise ValueError(f"{buckets} buckets of 2**{bits} ns are no window")
        self.begin = begin
        self.bits = bits
        self.unit_bits = bits - 8 if bits > 8 else 0
        self.end = begin + (buckets << bits)
        self.room = 4 * buckets
        self.count = 0
        self.bucket = -1
        self.best = 0
        self.held = 0
        self.start_column = self.starts = array("i", bytes(4 * self.room))
        self.dur_column = self.durs = array("I", bytes(4 * self.room))
        self.id_column = self.ids = array("I", bytes(4 * self.room))
        self.count_column = self.counts = array("I", bytes(4 * self.room))

    def fill(self, rows: Rows, row: int) -> int:
        """Find the items of the row; return how many there are."""
        low: cython.Py_ssize_t = rows.first[row]
        high: cython.Py_ssize_t = rows.first[row + 1]
        overlaps: cython.bint = rows.overlaps[row]
        self.count = 0
        self.held = 0
        with cython.nogil:
            self._find(rows, low, high, overlaps)
        return self.count

    def items(self) -> tuple[array[int], array[int], array[int], array[int]]:
        """Copies of what `fill` found: starts, durs, ids, counts."""
        n = self.count
        return self.start_column[:n], self.dur_column[:n], self.id_column[:n], self.count_column[:n]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _find(
        self, rows: Rows, low: cython.Py_ssize_t, high: cython.Py_ssize_t, overlaps: cython.bint
    ) -> cython.int:
        at: cython.Py_ssize_t = rows._lower(low, high, self.begin)
        until: cython.Py_ssize_t = rows._lower(at, high, self.end)
        self._from_before(rows, low, at, overlaps)
        while at < until:
            if at % _BLOCK == 0 and at + _BLOCK <= until and self._block(rows, at):
                at += _BLOCK
            else:
                self._slice(rows, rows.order[at], 1)
                at += 1
        self._close(rows)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _from_before(
        self, rows: Rows, low: cython.Py_ssize_t, high: cython.Py_ssize_t, overlaps: cython.bint
    ) -> cython.int:
        """The long slices that begin before the window and reach into it."""
        at: cython.Py_ssize_t = low if overlaps or high == low else high - 1
        shortest: cython.longlong = cython.cast(cython.longlong, 1) << self.bits
        slice_: cython.uint
        while at < high:
            if at % _BLOCK == 0 and at + _BLOCK <= high and not self._reaches(rows, at):
                at += _BLOCK
                continue
            slice_ = rows.order[at]
            if rows.dur[slice_] >= shortest and rows._end(slice_) > self.begin:
                self._give(rows, slice_, 1)
            at += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _reaches(self, rows: Rows, at: cython.Py_ssize_t) -> cython.bint:
        """Whether a slice of the block could end after the window begins."""
        latest: cython.longlong = rows.start[rows.order[at + _BLOCK - 1]]
        return rows.dur[rows.longest[at // _BLOCK]] > self.begin - latest

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _block(self, rows: Rows, at: cython.Py_ssize_t) -> cython.bint:
        """Take a whole block if it lies in one bucket and none of its slices is long."""
        best: cython.uint = rows.longest[at // _BLOCK]
        bucket: cython.longlong = (rows.start[rows.order[at]] - self.begin) >> self.bits
        last: cython.longlong = (rows.start[rows.order[at + _BLOCK - 1]] - self.begin) >> self.bits
        if bucket != last or rows.dur[best] >> self.bits:
            return False
        self._slice(rows, best, cython.cast(cython.uint, _BLOCK))
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _slice(self, rows: Rows, slice_: cython.uint, held: cython.uint) -> cython.int:
        bucket: cython.longlong
        if rows.dur[slice_] >> self.bits:
            self._give(rows, slice_, 1)
            return 0
        bucket = (rows.start[slice_] - self.begin) >> self.bits
        if self.held and bucket != self.bucket:
            self._close(rows)
        if not self.held or rows.dur[slice_] > rows.dur[self.best]:
            self.best = slice_
        self.bucket = bucket
        self.held += held
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _close(self, rows: Rows) -> cython.int:
        if self.held:
            self._give(rows, self.best, self.held)
        self.held = 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _give(self, rows: Rows, slice_: cython.uint, held: cython.uint) -> cython.int:
        begin: cython.longlong
        end: cython.longlong
        if self.count == self.room:
            self.counts[self.room - 1] += held
            return 0
        begin = self._units(rows.start[slice_])
        end = self._units(rows._end(slice_))
        self.starts[self.count] = cython.cast(cython.int, begin)
        self.durs[self.count] = cython.cast(cython.uint, end - begin)
        self.ids[self.count] = slice_
        self.counts[self.count] = held
        self.count += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _units(self, moment: cython.longlong) -> cython.longlong:
        """The moment from the window's start, in units, and no further away than can be told."""
        far: cython.longlong = _FURTHEST << self.unit_bits
        if moment < self.begin:
            # Apart from an overflow this is the difference of the two.
            if self.begin > 0 and moment < self.begin - _LAST:
                return -_FURTHEST
            return -_FURTHEST if self.begin - moment > far else (moment - self.begin) >> self.unit_bits
        if self.begin < 0 and moment > _LAST + self.begin:
            return _FURTHEST
        return _FURTHEST if moment - self.begin > far else (moment - self.begin) >> self.unit_bits


def labels(
    ids: cython.const[cython.uint][::1],
    name: cython.const[cython.uint][::1],
    kind: cython.const[cython.uchar][::1],
    role: cython.const[cython.uchar][::1],
    number_of_name: cython.const[cython.uint][::1],
    style_of_number: cython.const[cython.uchar][::1],
    style_of_kind: cython.const[cython.uchar][::1],
    style_of_role: cython.const[cython.uchar][::1],
) -> array[int]:
    """For each slice the number of its name and, in the upper 8 bits, its style: that of its role, its kind or its name.

    A role or kind without a style of its own has NO_STYLE there. Codes beyond their table have neither.
    """
    n: cython.Py_ssize_t = len(ids)
    codes: cython.Py_ssize_t = len(number_of_name)
    kinds: cython.Py_ssize_t = len(style_of_kind)
    roles: cython.Py_ssize_t = len(style_of_role)
    result = array("I", bytes(4 * n))
    out: cython.uint[::1] = result
    none: cython.uchar = NO_STYLE
    number: cython.uint
    style: cython.uchar
    at: cython.uint
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            at = ids[i]
            number = number_of_name[name[at]] if name[at] < codes else 0
            style = style_of_role[role[at]] if role[at] < roles else none
            if style == none and kind[at] < kinds:
                style = style_of_kind[kind[at]]
            if style == none:
                style = style_of_number[number]
            out[i] = number | (cython.cast(cython.uint, style) << 24)
    return result


def samples(
    time: cython.const[cython.longlong][::1],
    value: cython.const[cython.double][::1],
    begin: cython.longlong,
    bits: cython.int,
    buckets: cython.int,
) -> tuple[array[int], array[float], array[float], array[float]]:
    """Of a counter, which comes by time: the buckets with samples, and the least, greatest and last value in each.

    A bucket of -1 comes first, with the last value before the window, if there is one.
    """
    need_equal(len(time), len(value))
    if not 0 < buckets <= MOST_BUCKETS or not 0 <= bits <= 48:
        raise ValueError(f"{buckets} buckets of 2**{bits} ns are no window")
    n: cython.Py_ssize_t = len(time)
    places = array("i", bytes(4 * (buckets + 1)))
    lows, highs, lasts = (array("d", bytes(8 * (buckets + 1))) for _ in range(3))
    place: cython.int[::1] = places
    low: cython.double[::1] = lows
    high: cython.double[::1] = highs
    last: cython.double[::1] = lasts
    end: cython.longlong = begin + (cython.cast(cython.longlong, buckets) << bits)
    found: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    until: cython.Py_ssize_t = n
    middle: cython.Py_ssize_t
    bucket: cython.int
    with cython.nogil:
        while at < until:
            middle = (at + until) >> 1
            if time[middle] < begin:
                at = middle + 1
            else:
                until = middle
        if at > 0:
            at -= 1
        while at < n and time[at] < end:
            bucket = -1 if time[at] < begin else cython.cast(cython.int, (time[at] - begin) >> bits)
            if found == 0 or place[found - 1] != bucket:
                place[found] = bucket
                low[found] = high[found] = value[at]
                found += 1
            elif value[at] < low[found - 1]:
                low[found - 1] = value[at]
            elif value[at] > high[found - 1]:
                high[found - 1] = value[at]
            last[found - 1] = value[at]
            at += 1
    return places[:found], lows[:found], highs[:found], lasts[:found]
