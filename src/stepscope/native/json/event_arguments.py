# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""The args of events: known ones into slots, and from there into columns; the rest stays JSON text.

Bytes by number: 34 `"`  44 `,`  91 `[`  93 `]`  123 `{`  125 `}`
"""

from __future__ import annotations

from array import array

from stepscope.native.buffers import room
from stepscope.native.json.gaps import CLOSING
from stepscope.native.json.numbers import MISSING
from stepscope.native.json.values import CLOSED, NEED

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, event_arguments.pxd imports them
    from stepscope.native.json.gaps import Gaps
    from stepscope.native.json.numbers import Numbers
    from stepscope.native.json.values import Values
    from stepscope.native.strings import Strings

COMPILED = bool(cython.compiled)

# How the value of a known argument is kept.
INTEGER = 0
BILLIONTHS = 1  # a decimal number, times 10^9
TEXT = 2  # the code of a string; of the JSON text where it is not a string
TRIPLE = 3  # an array of three integers, in this and the next two slots

_NEED = cython.declare(cython.Py_ssize_t, NEED)
_CLOSED = cython.declare(cython.Py_ssize_t, CLOSED)
_CLOSING = cython.declare(cython.Py_ssize_t, CLOSING)
_MISSING = cython.declare(cython.longlong, MISSING)
_NULL = cython.declare(cython.ulonglong, int.from_bytes(b"null", "little"))
_BILLIONTHS = cython.declare(cython.int, BILLIONTHS)
_TEXT = cython.declare(cython.int, TEXT)
_TRIPLE = cython.declare(cython.int, TRIPLE)
_EXPECTED = cython.declare(cython.Py_ssize_t, (1 << 13) - 1)  # the last index of both tables


@cython.final
@cython.cclass
class Arguments:
    """The known arguments of the current event, and the layouts they are written to."""

    def __init__(self, values: Values, numbers: Numbers, strings: Strings, keys: Strings, gaps: Gaps) -> None:
        self.look_at(memoryview(b"\0"))
        self.values, self.numbers, self.strings, self.keys = values, numbers, strings, keys
        self.gaps = gaps
        self.serial = 0
        self.before = 0
        self.clear()

    def look_at(self, buf: memoryview) -> None:
        """Read from this buffer from now on; the parts it is read with look at it too."""
        self.buf = buf
        self.end = len(self.buf)

    def take_keys(self, keys: list[tuple[bytes, int, int]], slot_count: int) -> None:
        """Know these arguments, each with its slot and how it is kept. Slots begin empty."""
        self.key_slot = room("i", len(keys))
        self.key_kind = room("i", len(keys))
        self.slot_value = room("q", slot_count)
        self.slot_serial = room("q", slot_count)
        self.expected = room("I", _EXPECTED + 1)
        self.expected_gaps = room("I", _EXPECTED + 1)
        for text, slot, kind in keys:
            code = self.keys.code_of(text)
            self.key_slot[code] = slot
            self.key_kind[code] = kind

    def take_layouts(
        self,
        categories: list[tuple[bytes, int]],
        layouts: list[list[int]],
        trigger: tuple[int, int],
        fallback: tuple[int, int],
        expected_events: int,
    ) -> None:
        """Write events of these categories to these layouts, each made of slots. See `events.Scanner`."""
        self.layout_of_category = room("i", len(categories))
        for text, layout in categories:
            self.layout_of_category[self.strings.code_of(text)] = layout
        widths = [len(layout) for layout in layouts]
        self.layout_slots = array("i", [slot for layout in layouts for slot in layout] or [0])
        self.layout_first = array("i", [sum(widths[:i]) for i in range(len(layouts) + 1)])
        self.layout_rows = room("q", len(layouts))
        self.capacity = expected_events
        self.cells = room("q", self.capacity * (sum(widths) + len(layouts)))
        self.trigger_slot, self.trigger_layout = trigger
        self.fallback_slot, self.fallback_layout = fallback

    def layout(self, number: int) -> list[memoryview]:
        """The columns of one layout: the event's row number, then its slots."""
        cells = memoryview(self.cells)
        rows = self.layout_rows[number]
        starts = [column * self.capacity for column in self._columns(number)]
        return [cells[start : start + rows] for start in starts]

    def _columns(self, number: int) -> range:
        """Which columns of all are of this layout; it has one more than it has slots."""
        return range(self.layout_first[number] + number, self.layout_first[number + 1] + number + 1)

    def _grow(self) -> None:
        old, before = memoryview(self.cells), self.capacity
        after = before * 2
        new = room("q", after * (len(old) // before))
        for number in range(len(self.layout_rows)):
            rows = self.layout_rows[number]
            for column in self._columns(number):
                new[column * after : column * after + rows] = old[column * before : column * before + rows]
        self.cells, self.capacity = new, after

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def clear(self) -> cython.int:
        """Begin another event."""
        self.serial += 1
        self.known = 0
        self.extra = False
        self.lo = self.hi = -1
        return 0

    # --- reading ----------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def read(self, p: cython.Py_ssize_t, name: cython.uint) -> cython.Py_ssize_t:
        """The args at `p`, of an event with this name if it is known yet. Returns the place after them."""
        begin: cython.Py_ssize_t = p
        key: cython.Py_ssize_t = -1
        at: cython.Py_ssize_t
        gap: cython.Py_ssize_t
        after: cython.Py_ssize_t
        if self.buf[p] != 123:
            return self._other(p)
        self.before = name
        p += 1
        while True:
            # Events of a name have the same members; what follows the last known one is what followed it before.
            at = (cython.cast(cython.Py_ssize_t, name) * 31 + key + 1) & _EXPECTED
            gap = cython.cast(cython.Py_ssize_t, self.expected_gaps[at]) - 1
            after = self.gaps.texts.end_at(gap, p)
            if after >= 0 and self.gaps.meaning[gap] == _CLOSING:
                self.lo = begin
                self.hi = after
                return after
            if after >= 0 and after < self.end and self.buf[after] > 32:
                key = self.gaps.meaning[gap]
                p = after
            else:
                after = p
                p = self.values.member(p)
                if p == _CLOSED:
                    self.expected_gaps[at] = cython.cast(
                        cython.uint, self.gaps.take(after, self.values.hi, _CLOSING)
                    )
                    self.lo = begin
                    self.hi = self.values.hi
                    return self.hi
                if p < 0:
                    return p
                key = self.keys.find(self.values.lo, self.values.hi, -1)
                if key >= 0:
                    self.expected_gaps[at] = cython.cast(
                        cython.uint, self.gaps.take(after, p, cython.cast(cython.int, key))
                    )
            if key >= 0:
                p = self._one(key, p)
            else:
                self.extra = True
                p = self.values.skip(p)
            if p < 0:
                return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _other(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Args that are no object: kept as they are, unless they are null."""
        begin: cython.Py_ssize_t = p
        p = self.values.skip(p)
        if p > begin and self.values.packed(begin, p) != _NULL:
            self.extra = True
            self.lo = begin
            self.hi = p
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _one(self, key: cython.Py_ssize_t, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The value of a known argument, at `p`."""
        kind: cython.int = self.key_kind[key]
        slot: cython.int = self.key_slot[key]
        value: cython.longlong
        if kind == _TRIPLE:
            return self._three(slot, p)
        if kind == _TEXT:
            return self._text(slot, p)
        p = self.numbers.scaled(p, 9) if kind == _BILLIONTHS else self.numbers.integer(p)
        if p < 0:
            return p
        value = self.numbers.value
        if value == _MISSING:
            self.extra = True
            return p
        if kind == _BILLIONTHS and self.numbers.fraction >= 500000:
            value += 1
        self._set(slot, value)
        self.known += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _text(self, slot: cython.int, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The value of a known argument that is kept as text, at `p`.

        Jobs repeat themselves: an array is looked for by the text before it in this event and by the one that the slot had
        before. What begins with the bytes of a whole array is that array, so there is no need to walk through it.
        """
        last: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.slot_value[slot])
        at: cython.Py_ssize_t = (last * 961 + self.before * 31 + slot) & _EXPECTED
        is_array: cython.bint = self.buf[p] == 91
        repaired: cython.Py_ssize_t = self.values.repaired
        code: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.expected[at]) - 1
        end: cython.Py_ssize_t = self.strings.end_at(code, p) if is_array else -1
        if end < 0:
            end = self.values.text(p)
            if end < 0:
                return end
            code = self.strings.intern(self.values.lo, self.values.hi, self.values.escaped, last)
            if is_array and self.values.repaired == repaired:
                self.expected[at] = cython.cast(cython.uint, code + 1)
        self.before = code
        self._set(slot, code)
        self.known += 1
        return end

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _three(self, slot: cython.int, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """[x, y, z] into three slots; anything else is left to the JSON text."""
        begin: cython.Py_ssize_t = p
        i: cython.int = 0
        if self.buf[p] == 91:
            p = self.values.space_and_commas(p + 1)
            while i < 3 and p < self.end and self.buf[p] != 93 and self.buf[p] != 91 and self.buf[p] != 123:
                p = self.numbers.integer(p)
                if p < 0:
                    return p
                if self.numbers.value == _MISSING:
                    break
                self._set(slot + i, self.numbers.value)
                i += 1
                p = self.values.space_and_commas(p)
            if p >= self.end:
                return _NEED
            if i == 3 and self.buf[p] == 93:
                self.known += 3
                return p + 1
            for i in range(3):
                self.slot_serial[slot + i] = 0
        self.extra = True
        return self.values.skip(begin)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _set(self, slot: cython.int, value: cython.longlong) -> cython.int:
        self.slot_value[slot] = value
        self.slot_serial[slot] = self.serial
        return 0

    # --- writing ----------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def keep(self, event: cython.Py_ssize_t, category: cython.uint) -> cython.bint:
        """Write the known arguments to the event's layouts. Whether the JSON text holds more than they do."""
        layout: cython.int = 0
        held: cython.Py_ssize_t = 0
        if category < len(self.layout_of_category):
            layout = self.layout_of_category[category]
        if layout == 0 and self.slot_serial[self.fallback_slot] == self.serial:
            layout = self.fallback_layout
        if layout > 0:
            held = self._add_row(layout, event)
        if self.slot_serial[self.trigger_slot] == self.serial:
            held += self._add_row(self.trigger_layout, event)
        return self.lo >= 0 and (self.extra or held < self.known)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_row(self, layout: cython.int, event: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A row of the layout; returns how many of the event's known arguments it holds."""
        row: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.layout_rows[layout])
        first: cython.int = self.layout_first[layout]
        at: cython.Py_ssize_t
        slot: cython.int
        i: cython.int
        held: cython.Py_ssize_t = 0
        if row >= self.capacity:
            with cython.gil:
                self._grow()
        at = (first + layout) * self.capacity + row
        self.cells[at] = event
        for i in range(first, self.layout_first[layout + 1]):
            at += self.capacity
            slot = self.layout_slots[i]
            if self.slot_serial[slot] == self.serial:
                self.cells[at] = self.slot_value[slot]
                held += 1
            else:
                self.cells[at] = _MISSING
        self.layout_rows[layout] = row + 1
        return held
