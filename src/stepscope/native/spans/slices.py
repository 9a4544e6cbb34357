# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Slices of time by the million: the window that holds a moment, slices cut at windows, and what they sum to."""

from __future__ import annotations

from array import array

from stepscope.native.buffers import column
from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF

_NONE = cython.declare(cython.uint, 0xFFFFFFFF)
_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.nogil
@cython.boundscheck(False)  # every index is below `count`
@cython.exceptval(check=False)
def _first_after(
    moments: cython.const[cython.longlong][::1],
    count: cython.Py_ssize_t,
    time: cython.longlong,
    near: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The first of the moments, which are in order, that is after the time. `near` and the one after it are tried first."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = count
    middle: cython.Py_ssize_t
    if near < count and moments[near] > time:
        if near == 0 or moments[near - 1] <= time:
            return near
        high = near
    elif near < count:
        low = near + 1
        if low == count or moments[low] > time:
            return low
    while low < high:
        middle = (low + high) // 2
        if moments[middle] > time:
            high = middle
        else:
            low = middle + 1
    return low


def place(
    time: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
) -> memoryview:
    """For each time the span that holds it, or NONE. The spans are in order and do not overlap."""
    need_equal(len(start), len(end))
    n: cython.Py_ssize_t = len(time)
    spans: cython.Py_ssize_t = len(start)
    result = column("I", n)
    out: cython.uint[::1] = result
    i: cython.Py_ssize_t
    after: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            after = _first_after(start, spans, time[i], after)
            out[i] = _NONE
            if after > 0 and time[i] < end[after - 1]:
                out[i] = cython.cast(cython.uint, after - 1)
    return result


def cut(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    window_start: cython.const[cython.longlong][::1],
    window_end: cython.const[cython.longlong][::1],
) -> tuple[memoryview, memoryview, memoryview, memoryview]:
    """Each slice in each window that it reaches into: row, window, start and end. The windows are in order and do not overlap.

    First come the slices that end in the window they begin in, then the pieces of the others.
    """
    cutter = _Cutter()
    cutter.given(start, end, window_start, window_end)
    return cutter.pieces()


@cython.final
@cython.cclass
class _Cutter:
    """Walks over the slices twice: to count the pieces, then to write them down."""

    start: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    window_start: cython.const[cython.longlong][::1]
    window_end: cython.const[cython.longlong][::1]
    is_writing: cython.bint
    within: cython.Py_ssize_t
    across: cython.Py_ssize_t
    out_row: cython.uint[::1]
    out_window: cython.uint[::1]
    out_start: cython.longlong[::1]
    out_end: cython.longlong[::1]

    def given(self, start: object, end: object, window_start: object, window_end: object) -> None:
        """What to cut, and by what."""
        self.start, self.end, self.window_start, self.window_end = start, end, window_start, window_end
        need_equal(len(self.start), len(self.end))
        need_equal(len(self.window_start), len(self.window_end))

    def pieces(self) -> tuple[memoryview, memoryview, memoryview, memoryview]:
        """Row, window, start and end."""
        self.is_writing = False
        self.within, self.across = 0, 0
        self._walk()
        count = self.within + self.across
        found = column("I", count), column("I", count), column("q", count), column("q", count)
        self.out_row, self.out_window, self.out_start, self.out_end = found
        self.is_writing = True
        self.within, self.across = 0, self.within
        self._walk()
        return found

    @cython.cfunc
    def _walk(self) -> cython.void:
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.start)
        last: cython.Py_ssize_t = len(self.window_end) - 1
        window: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(n):
                if last < 0:
                    break
                window = _first_after(self.window_end, last + 1, self.start[i], window)
                if window > last:
                    window = last
                if window == last or self.end[i] <= self.window_end[window]:
                    self.within += self._piece(i, window, self.within)
                else:
                    self._spread(i, window, last)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # windows are below the last, and there is room for what was counted
    @cython.exceptval(check=False)
    def _spread(self, i: cython.Py_ssize_t, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        """A slice in all windows from the first to the one in which it ends."""
        window: cython.Py_ssize_t
        for window in range(first, last + 1):
            self.across += self._piece(i, window, self.across)
            if self.window_end[window] >= self.end[i]:
                break
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # windows are below the last, and there is room for what was counted
    @cython.exceptval(check=False)
    def _piece(self, i: cython.Py_ssize_t, window: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.int:
        """How many rows it takes: none where the slice has no time in the window."""
        begin: cython.longlong = self.start[i]
        stop: cython.longlong = self.end[i]
        if self.window_start[window] > begin:
            begin = self.window_start[window]
        if self.window_end[window] < stop:
            stop = self.window_end[window]
        if begin >= stop:
            return 0
        if self.is_writing:
            self.out_row[at] = cython.cast(cython.uint, i)
            self.out_window[at] = cython.cast(cython.uint, window)
            self.out_start[at] = begin
            self.out_end[at] = stop
        return 1


def runs(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    kind: cython.const[cython.uchar][::1],
    gap: cython.const[cython.uint][::1],
    named_by: cython.const[cython.uint][::1],
    detail: cython.const[cython.uint][::1],
    thread: cython.const[cython.uint][::1],
) -> tuple[memoryview, memoryview]:
    """Slices that follow one another at once and say the same, as one: the first row of each, and where it ends."""
    need_equal(len(start), len(end), len(kind), len(gap), len(named_by), len(detail), len(thread))
    n: cython.Py_ssize_t = len(start)
    first, last = column("I", n), column("q", n)
    out_first: cython.uint[::1] = first
    out_end: cython.longlong[::1] = last
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            if (
                i == 0
                or start[i] != end[i - 1]
                or gap[i] != gap[i - 1]
                or kind[i] != kind[i - 1]
                or named_by[i] != named_by[i - 1]
                or detail[i] != detail[i - 1]
                or thread[i] != thread[i - 1]
            ):
                out_first[count] = cython.cast(cython.uint, i)
                count += 1
            out_end[count - 1] = end[i]
    return first[:count], last[:count]


def sum_cells(
    row: cython.const[cython.int][::1],
    kind: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    rows: tuple[int, int],
    kinds: int,
) -> tuple[array[int], array[int], array[int]]:
    """Row, kind and length of all slices of each row and kind, in the order in which they are first met.

    `rows` are the lowest and the highest; kinds are below `kinds`.
    """
    need_equal(len(row), len(kind), len(start), len(end))
    low: cython.longlong = rows[0]
    size = (rows[1] - rows[0] + 1) * kinds
    most = min(size, len(row))
    cell: cython.uint[::1] = array("I", bytes(4 * size))  # one more than its place among those found
    found_row, found_kind = array("i", bytes(4 * most)), array("B", bytes(most))
    found_sum = array("q", bytes(8 * most))
    out_row: cython.int[::1] = found_row
    out_kind: cython.uchar[::1] = found_kind
    out_sum: cython.longlong[::1] = found_sum
    width: cython.Py_ssize_t = kinds
    n: cython.Py_ssize_t = len(row)
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            at = (row[i] - low) * width + kind[i]
            if cell[at] == 0:
                out_row[count] = row[i]
                out_kind[count] = kind[i]
                count += 1
                cell[at] = cython.cast(cython.uint, count)
            out_sum[cell[at] - 1] += end[i] - start[i]
    return found_row[:count], found_kind[:count], found_sum[:count]


@cython.final
@cython.cclass
class Alike:
    """Slices of the same part and thread whose events have the same names, summed.

    `name` has a number for the name of each event; NONE stands for no event, and no thread.
    """

    part: cython.const[cython.uchar][::1]
    thread: cython.const[cython.uint][::1]
    named_by: cython.const[cython.uint][::1]
    detail: cython.const[cython.uint][::1]
    start: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    name: cython.const[cython.uint][::1]
    odd: cython.ulonglong
    mask: cython.ulonglong
    count: cython.Py_ssize_t
    slot: cython.uint[::1]  # one more than the number of the sum
    shown: cython.uint[::1]  # by number: the slice that was met first
    sum: cython.longlong[::1]

    def __init__(self, name: object, odd: int) -> None:
        self.name = name
        self.odd = odd

    def slices(self, part: object, thread: object, named_by: object, detail: object) -> None:
        """What they are about."""
        self.part, self.thread, self.named_by, self.detail = part, thread, named_by, detail
        need_equal(len(self.part), len(self.thread), len(self.named_by), len(self.detail))

    def sums(self, start: object, end: object) -> tuple[array[int], array[int]]:
        """The first slice of each sort in the order in which they are met, and how long all of them are."""
        self.start, self.end = start, end
        need_equal(len(self.part), len(self.start), len(self.end))
        shown, found, bits = array("I"), array("q"), 10
        self.count = 0
        done = 0
        while True:
            more = (1 << bits) // 2 - len(shown)
            shown, found = shown + array("I", bytes(4 * more)), found + array("q", bytes(8 * more))
            self.shown, self.sum, self.slot = shown, found, array("I", bytes(4 << bits))
            self.mask = (1 << bits) - 1
            self._place_known()
            done = self._run(done)
            if done == len(self.part):
                return shown[: self.count], found[: self.count]
            bits += 2

    @cython.cfunc
    def _place_known(self) -> cython.void:
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(self.count):
                self.slot[self._at(self.shown[i])] = cython.cast(cython.uint, i + 1)

    @cython.cfunc
    def _run(self, first: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Add slices from the first on; how far there was room for them."""
        i: cython.Py_ssize_t = first
        n: cython.Py_ssize_t = len(self.part)
        room: cython.Py_ssize_t = len(self.shown)
        at: cython.ulonglong
        with cython.nogil:
            while i < n:
                at = self._at(i)
                if self.slot[at] == 0:
                    if self.count == room:
                        break
                    self.shown[self.count] = cython.cast(cython.uint, i)
                    self.count += 1
                    self.slot[at] = cython.cast(cython.uint, self.count)
                self.sum[self.slot[at] - 1] += self.end[i] - self.start[i]
                i += 1
        return i

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(0xFFFFFFFE)
    def _name(self, event: cython.uint) -> cython.uint:
        return self.name[event] if event != _NONE else _NONE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(0xFFFFFFFFFFFFFFFF)
    def _at(self, i: cython.Py_ssize_t) -> cython.ulonglong:
        """The slot of slices like this one, or the free one that is to be theirs."""
        name: cython.uint = self._name(self.named_by[i])
        detail: cython.uint = self._name(self.detail[i])
        bits: cython.ulonglong = ((name + 1) * self.odd + detail) & _ALL_BITS
        bits = ((bits ^ (bits >> 32)) * self.odd + self.thread[i] * 256 + self.part[i]) & _ALL_BITS
        bits = (bits * self.odd) & _ALL_BITS
        at: cython.ulonglong = (bits ^ (bits >> 32)) & self.mask
        other: cython.Py_ssize_t
        while self.slot[at] != 0:
            other = self.shown[self.slot[at] - 1]
            if (
                self.part[other] == self.part[i]
                and self.thread[other] == self.thread[i]
                and self._name(self.named_by[other]) == name
                and self._name(self.detail[other]) == detail
            ):
                break
            at = (at + 1) & self.mask
        return at
