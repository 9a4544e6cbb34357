# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""What the host worked on before each launch, by cause and name: the pieces of its timeline, like ones in a row as one."""

from __future__ import annotations

from stepscope.native.buffers import column

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF
WAITS = 1  # an event in which the thread waits for the device: no work
FULL = 2  # a launch that waited for room in the queue: more than the usual time is the device's


@cython.final
@cython.cclass
class HostWork:
    """Walks over spans of host time twice: to count the pieces, then to write them down.

    The segments of track t are `first[t]` to `first[t + 1]`. While the thread of a span did nothing, it waited for the
    main one, and what that one did counts. `cause`, `named_by` and `flags` are by event, `unknown` is the cause where
    no thread did anything. `quiet_start` and `quiet_end` are waits of the main thread that left no event.
    """

    item: cython.const[cython.uint][::1]
    track: cython.const[cython.uint][::1]
    start: cython.const[cython.longlong][::1]
    end: cython.const[cython.longlong][::1]
    first: cython.const[cython.uint][::1]
    segment_start: cython.const[cython.longlong][::1]
    segment_end: cython.const[cython.longlong][::1]
    segment_event: cython.const[cython.uint][::1]
    cause: cython.const[cython.uchar][::1]
    named_by: cython.const[cython.uint][::1]
    flags: cython.const[cython.uchar][::1]
    quiet_start: cython.const[cython.longlong][::1]
    quiet_end: cython.const[cython.longlong][::1]
    main: cython.uint
    quiet_track: cython.uint
    unknown: cython.uchar
    usual: cython.longlong
    none: cython.uint
    is_writing: cython.bint
    count: cython.Py_ssize_t
    last_item: cython.uint
    last_cause: cython.uchar
    last_name: cython.uint
    out_item: cython.uint[::1]
    out_cause: cython.uchar[::1]
    out_name: cython.uint[::1]
    out_event: cython.uint[::1]
    out_ns: cython.longlong[::1]

    def __init__(self, main: int, quiet_track: int, unknown: int, usual: int) -> None:
        self.main = main
        self.quiet_track = quiet_track
        self.unknown = unknown
        self.usual = usual
        self.none = NONE

    def spans(self, item: object, track: object, start: object, end: object) -> None:
        """The host time to look at: before which item, on which track, from when to when."""
        self.item, self.track, self.start, self.end = item, track, start, end

    def segments(self, first: object, start: object, end: object, event: object) -> None:
        """What each thread did when."""
        self.first, self.segment_start, self.segment_end, self.segment_event = first, start, end, event

    def events(self, cause: object, named_by: object, flags: object) -> None:
        """What each event stands for."""
        self.cause, self.named_by, self.flags = cause, named_by, flags

    def quiet(self, start: object, end: object) -> None:
        """Waits without an event, in time order."""
        self.quiet_start, self.quiet_end = start, end

    def pieces(self) -> tuple[memoryview, memoryview, memoryview, memoryview, memoryview]:
        """item, cause, named_by, event (the first of several) and ns, in the order of the spans."""
        self.is_writing = False
        self._walk()
        found = (
            column("I", self.count),
            column("B", self.count),
            column("I", self.count),
            column("I", self.count),
            column("q", self.count),
        )
        self.out_item, self.out_cause, self.out_name, self.out_event, self.out_ns = found
        self.is_writing = True
        self._walk()
        return found

    @cython.cfunc
    def _walk(self) -> cython.void:
        i: cython.Py_ssize_t
        self.count = 0
        with cython.nogil:
            for i in range(len(self.start)):
                self._span(i, self.track[i], self.start[i], self.end[i])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _span(
        self, i: cython.Py_ssize_t, track: cython.uint, cursor: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """The pieces of one span on one track."""
        s: cython.Py_ssize_t = 0
        last: cython.Py_ssize_t = 0
        until: cython.longlong
        if track < len(self.first) - 1:
            last = self.first[track + 1]
            s = self._first_ending_after(self.first[track], last, cursor)
        while cursor < end:
            if s < last and self.segment_start[s] <= cursor:
                until = self.segment_end[s] if self.segment_end[s] < end else end
                self._piece(i, track, cursor, until, self.segment_event[s])
                s += 1
            else:
                until = self.segment_start[s] if s < last and self.segment_start[s] < end else end
                if track == self.main:
                    self._piece(i, track, cursor, until, self.none)
                else:
                    self._span(i, self.main, cursor, until)
            cursor = until
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _piece(
        self,
        i: cython.Py_ssize_t,
        track: cython.uint,
        start: cython.longlong,
        end: cython.longlong,
        event: cython.uint,
    ) -> cython.int:
        """One piece, added to the one before if it is of the same."""
        ns: cython.longlong = end - start
        cause: cython.uchar = self.unknown
        name: cython.uint = self.none
        flags: cython.uchar = 0
        if event != self.none:
            cause = self.cause[event]
            name = self.named_by[event]
            flags = self.flags[event]
        if flags & 1 or self._is_quiet(track, start, end):
            return 0
        if flags & 2 and ns > self.usual:
            ns = self.usual
        if (
            self.count == 0
            or self.item[i] != self.last_item
            or cause != self.last_cause
            or name != self.last_name
        ):
            self.last_item = self.item[i]
            self.last_cause = cause
            self.last_name = name
            if self.is_writing:
                self.out_item[self.count] = self.item[i]
                self.out_cause[self.count] = cause
                self.out_name[self.count] = name
                self.out_event[self.count] = event
            self.count += 1
        if self.is_writing:
            self.out_ns[self.count - 1] += ns
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _is_quiet(self, track: cython.uint, start: cython.longlong, end: cython.longlong) -> cython.bint:
        """Whether the piece lies in a wait that left no event."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = len(self.quiet_start)
        middle: cython.Py_ssize_t
        if high == 0 or track != self.quiet_track:
            return False
        while low < high:
            middle = (low + high) // 2
            if self.quiet_start[middle] <= start:
                low = middle + 1
            else:
                high = middle
        return low > 0 and self.quiet_end[low - 1] >= end

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
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
