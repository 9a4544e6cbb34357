# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""One pass over Chrome trace JSON (Kineto's included) into columns, without a Python object per event.

The bytes are untrusted: every index is checked, nothing recurses, and what cannot be read is counted and passed over.

Bytes by number: 34 `"`  44 `,`  91 `[`  93 `]`  123 `{`  125 `}`
"""

from __future__ import annotations

from random import SystemRandom
from typing import Any

from stepscope.native.json.event_arguments import BILLIONTHS, INTEGER, TEXT, TRIPLE
from stepscope.native.json.event_reader import TEXT_ID
from stepscope.native.json.event_rows import ASYNC_COLUMNS, FLOW_COLUMNS, META_COLUMNS
from stepscope.native.json.numbers import MISSING
from stepscope.native.json.values import NEED
from stepscope.native.strings import ESCAPED

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, events.pxd imports them
    from stepscope.native.json.event_arguments import Arguments
    from stepscope.native.json.event_reader import EventReader
    from stepscope.native.json.event_rows import Rows
    from stepscope.native.json.gaps import Gaps
    from stepscope.native.json.numbers import Numbers
    from stepscope.native.json.values import Values
    from stepscope.native.strings import Strings

__all__ = [
    "ASYNC_COLUMNS", "BILLIONTHS", "COMPILED", "DONE", "ESCAPED", "FLOW_COLUMNS", "HEADER", "INTEGER", "META_COLUMNS",
    "MISSING", "MORE", "NOT_JSON", "PAUSED", "STOPPED", "TEXT", "TEXT_ID", "TRIPLE", "Scanner",
]  # fmt: skip

COMPILED = bool(cython.compiled)

# What a scan can end with.
MORE = 1  # the bytes ended inside something: give it more, or call it cut
HEADER = 2  # a top-level member other than the events was passed: see key_span and value_span
DONE = 3  # the whole document was read
STOPPED = 4  # an event begins at or after the place to stop at
PAUSED = 5  # a stretch of events was read
NOT_JSON = 6  # the document is neither an object nor an array

_GO_ON = cython.declare(cython.Py_ssize_t, 0)
_MORE = cython.declare(cython.Py_ssize_t, MORE)
_HEADER = cython.declare(cython.Py_ssize_t, HEADER)
_DONE = cython.declare(cython.Py_ssize_t, DONE)
_STOPPED = cython.declare(cython.Py_ssize_t, STOPPED)
_PAUSED = cython.declare(cython.Py_ssize_t, PAUSED)
_NOT_JSON = cython.declare(cython.Py_ssize_t, NOT_JSON)
_NEED = cython.declare(cython.Py_ssize_t, NEED)
_EVENTS_PER_PAUSE = cython.declare(cython.Py_ssize_t, 1 << 18)
# How often the bytes of broken events may be read again, on average, in search of whole ones inside them.
_RETRIES = cython.declare(cython.Py_ssize_t, 8)
_LOOK_AHEAD = cython.declare(cython.Py_ssize_t, 1 << 20)
_TRACE_EV = cython.declare(cython.ulonglong, int.from_bytes(b"traceEv", "little"))
_ENTS = cython.declare(cython.ulonglong, int.from_bytes(b"ents", "little"))


@cython.final
@cython.cclass
class Scanner:
    """Reads events from a buffer, again and again if the document comes in windows."""

    buf: cython.const[cython.uchar][::1]
    pos: cython.Py_ssize_t
    end: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    in_events: cython.bint
    in_document: cython.bint
    top_is_array: cython.bint
    values: Values
    numbers: Numbers
    strings: Strings
    keys: Strings
    gaps: Gaps
    argument_gaps: Gaps
    arguments: Arguments
    rows: Rows
    reader: EventReader
    # The member that HEADER told of.
    key_lo: cython.Py_ssize_t
    key_hi: cython.Py_ssize_t
    value_lo: cython.Py_ssize_t
    value_hi: cython.Py_ssize_t
    # What was wrong.
    bad_events: cython.Py_ssize_t
    bad_bytes: cython.Py_ssize_t
    first_bad: cython.Py_ssize_t
    # In search of the next event: the last byte that was not blank, and how far there is none.
    is_lost: cython.bint
    before: cython.int
    sought: cython.Py_ssize_t
    # How much was read again, in this buffer, and where reading it began.
    retried: cython.Py_ssize_t
    fed_from: cython.Py_ssize_t
    reads: cython.Py_ssize_t

    def __init__(
        self,
        keys: list[tuple[bytes, int, int]],
        slot_count: int,
        categories: list[tuple[bytes, int]],
        layouts: list[list[int]],
        trigger: tuple[int, int],
        fallback: tuple[int, int],
        expected_events: int,
    ) -> None:
        """`keys`: (argument, slot, how it is kept). `categories`: (category, layout). `layouts`: the slots of each.

        An event whose args have the trigger's slot also gets a row of the trigger's layout. One whose category has
        no layout gets the fallback's if its args have the fallback's slot.
        """
        room = max(expected_events, 1024)
        seed = SystemRandom().getrandbits(64)
        self.values = Values()
        self.numbers = Numbers(self.values)
        self.strings = Strings(seed)
        self.keys = Strings(seed)
        self.gaps = Gaps(seed)
        self.argument_gaps = Gaps(seed)
        self.arguments = Arguments(self.values, self.numbers, self.strings, self.keys, self.argument_gaps)
        self.arguments.take_keys(keys, slot_count)
        self.arguments.take_layouts(categories, layouts, trigger, fallback, room)
        self.rows = Rows(self.arguments, seed, room)
        self.reader = EventReader(
            self.values, self.numbers, self.strings, self.arguments, self.rows, self.gaps
        )
        self.pos = self.end = self.stop = self.reads = 0
        self.is_lost = self.in_events = self.in_document = self.top_is_array = False
        self.key_lo = self.key_hi = self.value_lo = self.value_hi = 0
        self.bad_events = self.bad_bytes = self.retried = self.fed_from = self.before = self.sought = 0
        self.first_bad = -1

    # --- the public calls -------------------------------------------------------------------------------------

    def feed(self, buf: Any, pos: int, stop: int = -1) -> None:
        """Go on in this buffer, at `pos`; end with STOPPED at the first event at or past `stop`."""
        view = memoryview(buf)
        self.buf = view
        self.end = len(view)
        self.pos = self.fed_from = max(pos, 0)
        self.stop = stop if stop >= 0 else self.end + 1
        self.retried = 0
        for part in (
            self.values,
            self.numbers,
            self.strings,
            self.keys,
            self.gaps,
            self.argument_gaps,
            self.arguments,
            self.rows,
            self.reader,
        ):
            part.look_at(view)

    def begin_inside(self) -> None:
        """The buffer starts between two events, not at the head of the document."""
        self.in_events = self.in_document = True

    def run(self) -> int:
        """Go on until there is something to tell: one of MORE, HEADER, DONE, STOPPED, PAUSED, NOT_JSON."""
        result: cython.Py_ssize_t
        with cython.nogil:
            result = self._run()
        return result

    def give_up(self) -> bool:
        """Pass over the event at the current place, if another one begins after it."""
        found: cython.Py_ssize_t
        self.before = 0
        with cython.nogil:
            found = self._seek_event(self.pos + 1)
        if found < 0:
            return False
        self.bad_events += 1
        self.is_lost = False
        self._note_bad(found)
        return True

    def position(self) -> int:
        """Where the scan stands: at the start of what it could not finish."""
        return self.pos

    def key_span(self) -> tuple[int, int]:
        """The name of the member that HEADER told of."""
        return self.key_lo, self.key_hi

    def value_span(self) -> tuple[int, int]:
        """The value of the member that HEADER told of."""
        return self.value_lo, self.value_hi

    def is_inside_events(self) -> bool:
        """Whether the scan stands in the list of events."""
        return bool(self.in_events)

    def is_bare_array(self) -> bool:
        """Whether the document is a list of events without an object around it."""
        return bool(self.top_is_array)

    def counts(self) -> dict[str, int]:
        """What was read and what was wrong. `first_bad` is a place in the buffer that was fed when it was met."""
        return {
            **self.rows.counts(),
            "bad_events": self.bad_events,
            "bad_bytes": self.bad_bytes,
            "first_bad": self.first_bad,
            "repaired": self.values.repaired,
            "unread_values": self.numbers.unread,
        }

    def events(self) -> dict[str, memoryview]:
        """The columns of all events so far: ph, name, category, track, start, dur."""
        return self.rows.events()

    def layout(self, number: int) -> list[memoryview]:
        """The columns of one layout: the event's row number, then its slots."""
        return self.arguments.layout(number)

    def texts(self) -> list[tuple[bytes, int]]:
        """Every string by its code, with its flags."""
        return self.strings.texts()

    def tracks(self) -> list[tuple[int, int]]:
        """Process and thread of each track."""
        return self.rows.tracks.all()

    def flow_rows(self) -> memoryview:
        """Flow events, seven integers each; see FLOW_COLUMNS."""
        return self.rows.flow_rows()

    def meta_rows(self) -> memoryview:
        """Metadata events, three integers each (see META_COLUMNS); row n's args are the rest of event -1 - n."""
        return self.rows.meta_rows()

    def async_rows(self) -> memoryview:
        """The id of events that have one, two integers each; see ASYNC_COLUMNS."""
        return self.rows.async_rows()

    def rest_texts(self) -> tuple[memoryview, memoryview, memoryview]:
        """JSON objects that no column holds: the event's row number (metadata: -1 - row), offsets, and the bytes."""
        return self.rows.rest_texts()

    # --- the document -----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _run(self) -> cython.Py_ssize_t:
        result: cython.Py_ssize_t = _GO_ON
        if not self.in_document:
            result = self._open_document()
        while result == _GO_ON:
            result = self._events() if self.in_events else self._member()
        return result

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _open_document(self) -> cython.Py_ssize_t:
        p: cython.Py_ssize_t = self.values.space(self.pos)
        if p < self.end and self.buf[p] == 0xEF:  # a byte-order mark
            if p + 3 > self.end:
                return _MORE
            p = self.values.space(p + 3)
        if p >= self.end:
            return _MORE
        if self.buf[p] == 91:
            self.in_events = True
            self.top_is_array = True
        elif self.buf[p] != 123:
            self.pos = p
            return _NOT_JSON
        self.in_document = True
        self.pos = p + 1
        return _GO_ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _member(self) -> cython.Py_ssize_t:
        """One member of the top-level object: the list of events is entered, any other is told of."""
        p: cython.Py_ssize_t = self.values.space_and_commas(self.pos)
        self.pos = p
        if p >= self.end:
            return _MORE
        if self.buf[p] == 125:
            self.pos = p + 1
            return _DONE
        if self.buf[p] != 34:
            return self._lose_member(p + 1)
        p = self.values.key(p + 1)
        if p >= 0:
            self.key_lo = self.values.lo
            self.key_hi = self.values.hi
            if self.buf[p] == 91 and self._is_trace_events():
                self.in_events = True
                self.pos = p + 1
                return _GO_ON
            self.value_lo = p
            p = self.values.skip(p)
        if p == _NEED:
            return _MORE
        if p < 0:
            return self._lose_member(self.pos + 1 if self._may_retry() else self.values.bad_at + 1)
        self.value_hi = p
        self.pos = p
        return _HEADER

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _is_trace_events(self) -> cython.bint:
        lo: cython.Py_ssize_t = self.key_lo
        hi: cython.Py_ssize_t = self.key_hi
        return (
            hi - lo == 11
            and self.values.packed(lo, lo + 7) == _TRACE_EV
            and self.values.packed(lo + 7, hi) == _ENTS
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _lose_member(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Something unreadable between members: pass on to a quote or brace from `p` on."""
        while p < self.end and self.buf[p] != 34 and self.buf[p] != 125:
            p += 1
        self._note_bad(p)
        return _GO_ON if p < self.end else _MORE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _events(self) -> cython.Py_ssize_t:
        p: cython.Py_ssize_t
        until: cython.Py_ssize_t = self.reads + _EVENTS_PER_PAUSE
        while self.reads < until:
            if self.is_lost and not self._find_event():
                return _MORE
            p = self.values.space_and_commas(self.pos)
            self.pos = p
            if p >= self.end:
                return _MORE
            if p >= self.stop:
                return _STOPPED
            if self.buf[p] == 93:
                self.pos = p + 1
                self.in_events = False
                return _DONE if self.top_is_array else _GO_ON
            p = self.reader.read(p + 1) if self.buf[p] == 123 else self.values.bad(p)
            if p == _NEED:
                return _MORE
            if p < 0:
                self._lose_event()
            else:
                self.pos = p
                self.reads += 1
        return _PAUSED

    # --- broken places ----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _may_retry(self) -> cython.bint:
        """Whether what was read from `pos` to the bad place may be read again, in search of something whole.

        Not always, or else a file could have each byte read thousands of times.
        """
        self.retried += self.values.bad_at - self.pos
        return self.retried <= _RETRIES * (self.values.bad_at - self.fed_from) + 4 * _LOOK_AHEAD

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _lose_event(self) -> cython.int:
        """Pass over what stands in place of an event: all of it, if its end is clear; or look for the next event."""
        p: cython.Py_ssize_t = self.pos
        self.bad_events += 1
        if self._may_retry():
            p = self._end_of_value(p)
        if p > self.pos:
            return self._note_bad(p)
        self.is_lost = True
        self.before = 0
        return self._note_bad(self.pos + 1 if p < 0 else self.values.bad_at + 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _end_of_value(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place after the value at `p`, if it is not long and another one or the end of the list follows; or -1."""
        repaired: cython.Py_ssize_t = self.values.repaired
        self.values.end = min(self.end, p + _LOOK_AHEAD)
        p = self.values.skip(p)
        if p == _NEED:
            self.values.bad(self.values.end)
        elif p >= 0:
            self.values.bad(p)
            p = self.values.space(p)
        if p >= self.values.end or p < 0 or (self.buf[p] != 44 and self.buf[p] != 93):
            p = -1
        if self.values.repaired > repaired:  # a quote that was not closed may have swallowed the next event
            p = -1
        self.values.end = self.end
        self.values.repaired = repaired
        self.retried += self.values.bad_at - self.pos
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _find_event(self) -> cython.bint:
        """Go on to the next place where an event seems to begin, in this buffer or in the next."""
        found: cython.Py_ssize_t = self._seek_event(self.pos)
        self._note_bad(found if found >= 0 else self.sought)
        self.is_lost = found < 0
        return found >= 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _seek_event(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next `{` from `p` on that comes after a comma, bracket or brace, and before a key of events; or -1.

        `sought` is how far nothing was found: to the end, or to a `{` too near to it.
        """
        q: cython.Py_ssize_t
        c: cython.int
        while p < self.end:
            c = self.buf[p]
            if c == 123 and (self.before == 44 or self.before == 91 or self.before == 125):
                q = self.values.space(p + 1)
                if q + 6 >= self.end:
                    break
                if self.buf[q] == 34 and self.reader.is_key(q + 1):
                    return p
            if c > 32:
                self.before = c
            p += 1
        self.sought = p
        return -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _note_bad(self, p: cython.Py_ssize_t) -> cython.int:
        """Go on at `p`, and count what lies between."""
        if self.first_bad < 0:
            self.first_bad = self.pos
        self.bad_bytes += p - self.pos
        self.pos = p
        return 0
