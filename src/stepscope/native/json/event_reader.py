# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""One event of Chrome trace JSON at a time: its members by name, then its row.

Bytes by number: 34 `"`  125 `}`
"""

from __future__ import annotations

from stepscope.native.buffers import room
from stepscope.native.json.gaps import CLOSING
from stepscope.native.json.numbers import MISSING
from stepscope.native.json.values import CLOSED

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, event_reader.pxd imports them
    from stepscope.native.json.event_arguments import Arguments
    from stepscope.native.json.event_rows import Rows
    from stepscope.native.json.gaps import Gaps
    from stepscope.native.json.numbers import Numbers
    from stepscope.native.json.values import Values
    from stepscope.native.strings import Strings

COMPILED = bool(cython.compiled)

TEXT_ID = -(1 << 62)  # ids that are strings: this plus the string's code

_CLOSED = cython.declare(cython.Py_ssize_t, CLOSED)
_CLOSING = cython.declare(cython.int, CLOSING)
_MISSING = cython.declare(cython.longlong, MISSING)
_NO_CODE = cython.declare(cython.Py_ssize_t, 0xFFFFFFFF)
_TEXT_ID = cython.declare(cython.longlong, TEXT_ID)
_EXPECTED = cython.declare(cython.Py_ssize_t, (1 << 13) - 1)  # the last index of the table of expected names


def _packed(key: bytes) -> int:
    return int.from_bytes(key, "little")


# The keys of events, as `Values.packed` sees them.
_PH = cython.declare(cython.ulonglong, _packed(b"ph"))
_TS = cython.declare(cython.ulonglong, _packed(b"ts"))
_ID = cython.declare(cython.ulonglong, _packed(b"id"))
_BP = cython.declare(cython.ulonglong, _packed(b"bp"))
_S = cython.declare(cython.ulonglong, _packed(b"s"))
_PID = cython.declare(cython.ulonglong, _packed(b"pid"))
_TID = cython.declare(cython.ulonglong, _packed(b"tid"))
_DUR = cython.declare(cython.ulonglong, _packed(b"dur"))
_CAT = cython.declare(cython.ulonglong, _packed(b"cat"))
_ID2 = cython.declare(cython.ulonglong, _packed(b"id2"))
_NAME = cython.declare(cython.ulonglong, _packed(b"name"))
_ARGS = cython.declare(cython.ulonglong, _packed(b"args"))
# The same keys by number; 0 is none of them.
_IS_NAME = cython.declare(cython.int, 1)
_IS_CAT = cython.declare(cython.int, 2)
_IS_PH = cython.declare(cython.int, 3)
_IS_TS = cython.declare(cython.int, 4)
_IS_DUR = cython.declare(cython.int, 5)
_IS_ARGS = cython.declare(cython.int, 6)
_IS_PID = cython.declare(cython.int, 7)
_IS_TID = cython.declare(cython.int, 8)
_IS_ID = cython.declare(cython.int, 9)
_IS_ID2 = cython.declare(cython.int, 10)
_IS_BP = cython.declare(cython.int, 11)
_IS_S = cython.declare(cython.int, 12)
_KEYS = cython.declare(cython.int, 13)


@cython.final
@cython.cclass
class EventReader:
    """Reads events into rows."""

    def __init__(
        self,
        values: Values,
        numbers: Numbers,
        strings: Strings,
        arguments: Arguments,
        rows: Rows,
        gaps: Gaps,
    ) -> None:
        self.values, self.numbers, self.strings = values, numbers, strings
        self.arguments, self.rows = arguments, rows
        self.gaps = gaps
        self.plain_category = -1
        self.last_name = 0
        self.expected_gaps = room("I", _KEYS * 8)
        self.expected = room("I", _EXPECTED + 1)
        self.look_at(memoryview(b"\0"))

    def look_at(self, buf: memoryview) -> None:
        """Read from this buffer from now on; the parts it is read with look at it too."""
        self.buf = buf
        self.end = len(self.buf)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def read(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read the event whose content begins at `p` into a row. Returns the place after it, NEED or BAD."""
        repaired: cython.Py_ssize_t = self.values.repaired
        unread: cython.Py_ssize_t = self.numbers.unread
        self.rows.begin()
        p = self._members(p)
        if p < 0:  # it will be read again, or passed over
            self.rows.drop()
            self.values.repaired = repaired
            self.numbers.unread = unread
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def is_key(self, p: cython.Py_ssize_t) -> cython.bint:
        """Whether the string whose content begins at `p` is a key that events begin with."""
        q: cython.Py_ssize_t = p
        key: cython.ulonglong
        while q < self.end and q < p + 5 and self.buf[q] != 34:
            q += 1
        key = self.values.packed(p, q)
        if key == _NAME or key == _CAT or key == _PID or key == _TID or key == _ARGS:
            return True
        return key == _PH or key == _TS or key == _DUR or key == _ID

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _members(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """All members of an event, each expected to follow what it followed in the last event of its phase."""
        lo: cython.Py_ssize_t = -1
        at: cython.Py_ssize_t
        gap: cython.Py_ssize_t
        after: cython.Py_ssize_t
        key: cython.int = 0
        while True:
            at = key * 8 + (self.rows.event.phase & 7)
            gap = cython.cast(cython.Py_ssize_t, self.expected_gaps[at]) - 1
            after = self.gaps.texts.end_at(gap, p)
            key = self.gaps.meaning[gap] if after >= 0 else 0
            if key == _CLOSING:
                self.rows.finish()
                return after
            if key > 0 and after < self.end and self.buf[after] > 32:
                p = after
            else:
                after = p
                p = self.values.member(p)
                if p == _CLOSED:
                    self.expected_gaps[at] = cython.cast(
                        cython.uint, self.gaps.take(after, self.values.hi, _CLOSING)
                    )
                    after = self.values.hi
                    self.rows.finish()
                    return after
                if p < 0:
                    return p
                lo = self.values.lo
                key = self._key(self.values.packed(lo, self.values.hi))
                if key > 0:
                    self.expected_gaps[at] = cython.cast(cython.uint, self.gaps.take(after, p, key))
            self.rows.event.members += 1
            p = self._value(key, p) if key > 0 else self._unknown(lo, p)
            if p < 0:
                return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _key(self, key: cython.ulonglong) -> cython.int:
        """The number of a key that has a column, or nearly: see `_value`; 0 for others."""
        if key == _NAME:
            return _IS_NAME
        if key == _CAT:
            return _IS_CAT
        if key == _PH:
            return _IS_PH
        if key == _TS:
            return _IS_TS
        if key == _DUR:
            return _IS_DUR
        if key == _ARGS:
            return _IS_ARGS
        if key == _PID:
            return _IS_PID
        if key == _TID:
            return _IS_TID
        if key == _ID:
            return _IS_ID
        if key == _ID2:
            return _IS_ID2
        if key == _BP:
            return _IS_BP
        return _IS_S if key == _S else 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _value(self, key: cython.int, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The value, at `p`, of the member with this key."""
        if key == _IS_NAME:
            p = self._name(p)
        elif key == _IS_CAT:
            p = self._category(p)
        elif key == _IS_PH:
            p = self._phase(p)
        elif key == _IS_TS:
            p = self._start(p)
        elif key == _IS_DUR:
            p = self._duration(p)
        elif key == _IS_ARGS:
            p = self.arguments.read(p, self.rows.event.name)
        elif key == _IS_PID:
            p = self._identity(p)
            self.rows.event.pid = self.numbers.value
        elif key == _IS_TID:
            p = self._identity(p)
            self.rows.event.tid = self.numbers.value
        elif key == _IS_ID:
            p = self._identity(p)
            self.rows.event.id = self.numbers.value
        elif key == _IS_ID2:
            p = self.values.text(p)
            if not self.values.is_null:
                self.rows.event.id = _TEXT_ID + self._code(p, -1)
        elif key == _IS_BP:
            p = self.values.text(p)
            self.rows.event.binds_enclosing = not self.values.is_null
        else:  # how far an instant is drawn
            p = self.values.skip(p)
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _end_of(self, code: cython.Py_ssize_t, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place after the string at `p`, if it is the one of this code and a comma follows it at once; or -1."""
        end: cython.Py_ssize_t = self.strings.end_at(code, p + 1) if self.buf[p] == 34 else -1
        if end >= 0 and end + 1 < self.end and self.buf[end] == 34 and self.buf[end + 1] == 44:
            return end + 1
        return -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _category(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The category at `p`. Often it is that of the event before."""
        end: cython.Py_ssize_t = self._end_of(self.plain_category, p)
        repaired: cython.Py_ssize_t = self.values.repaired
        if end >= 0:
            self.rows.event.category = cython.cast(cython.uint, self.plain_category)
            return end
        end = self.values.text(p)
        self.rows.event.category = cython.cast(cython.uint, self._code(end, -1))
        if end >= 0 and self.buf[p] == 34 and self.values.repaired == repaired:
            self.plain_category = self.rows.event.category
        return end

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _name(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The name at `p`. Often it is the one that followed the name before it when that was met last."""
        at: cython.Py_ssize_t = self.last_name & _EXPECTED
        repaired: cython.Py_ssize_t = self.values.repaired
        code: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.expected[at]) - 1
        end: cython.Py_ssize_t = self._end_of(code, p)
        if end < 0:
            end = self.values.text(p)
            code = self._code(end, -1)
            if end >= 0 and self.buf[p] == 34 and self.values.repaired == repaired:
                self.expected[at] = cython.cast(cython.uint, code + 1)
        self.rows.event.name = cython.cast(cython.uint, code)
        self.last_name = code
        return end

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _unknown(self, lo: cython.Py_ssize_t, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A member that has no column, from its quote on."""
        p = self.values.skip(p)
        if p >= 0:
            self.rows.set_aside(self.rows.count, lo - 1, p, True)
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _phase(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if self.buf[p] != 34:
            return self.values.skip(p)
        if p + 3 < self.end and self.buf[p + 2] == 34 and self.buf[p + 3] == 44:
            if self.buf[p + 1] != 34 and self.buf[p + 1] != 92:
                self.rows.event.phase = self.buf[p + 1]
                return p + 3
        p = self.values.string(p + 1)
        if p >= 0:
            self.rows.event.phase = self.buf[self.values.lo] if self.values.hi > self.values.lo else 0
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _start(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        p = self.numbers.scaled(p, 3)
        if p >= 0 and self.numbers.value != _MISSING:
            self.rows.event.has_start = True
            self.rows.event.start = self.numbers.value
            self.rows.event.start_part = self.numbers.fraction
        elif self.numbers.fraction < 0:
            self.rows.event.is_out_of_range = True
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _duration(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        p = self.numbers.scaled(p, 3)
        if p >= 0 and self.numbers.value != _MISSING:
            self.rows.event.has_dur = True
            self.rows.event.dur = self.numbers.value
            self.rows.event.dur_part = self.numbers.fraction
        elif self.numbers.fraction < 0:
            self.rows.event.is_out_of_range = True
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _identity(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A pid, tid or id: an integer, or the code of a string."""
        if self.buf[p] != 34:
            return self.numbers.integer(p)
        p = self.values.text(p)
        self.numbers.value = _TEXT_ID + self._code(p, -1)
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _code(self, p: cython.Py_ssize_t, guess: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The code of the text that was read up to `p`; that of no string, if it is null or was not read."""
        if p < 0 or self.values.is_null:
            return _NO_CODE
        return self.strings.intern(self.values.lo, self.values.hi, self.values.escaped, guess)
