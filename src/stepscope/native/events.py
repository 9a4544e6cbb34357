# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One pass over Chrome trace JSON (Kineto's included) into columns, without a Python object per event.

The bytes are untrusted: every index is checked, nothing recurses, and what cannot be read is counted and passed
over. Numbers are decimal text and stay integers: µs become ns without passing through a float.

Bytes by number: 34 `"`  44 `,`  45 `-`  46 `.`  48 `0`  57 `9`  58 `:`  91 `[`  92 `\\`  93 `]`  123 `{`  125 `}`
"""

from __future__ import annotations

from array import array
from mmap import mmap

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

# What a scan can end with.
MORE = 1  # the bytes ended inside something: give it more, or call it cut
HEADER = 2  # a top-level member other than the events was passed: see key_span and value_span
DONE = 3  # the whole document was read
STOPPED = 4  # an event begins at or after the place to stop at
PAUSED = 5  # a stretch of events was read
NOT_JSON = 6  # the document is neither an object nor an array

# How the value of a known argument is kept.
INTEGER = 0
BILLIONTHS = 1  # a decimal number, times 10^9
TEXT = 2  # the code of a string; of the JSON text where it is not a string
TRIPLE = 3  # an array of up to three integers, in this and the next two slots

MISSING = -(1 << 63)
TEXT_ID = -(1 << 62)  # ids that are strings: this plus the string's code
ESCAPED = 1  # flag of a string: it has backslashes to be resolved

EVENT_COLUMNS = (("ph", "B"), ("name", "I"), ("category", "I"), ("track", "I"), ("start", "q"), ("dur", "q"))
FLOW_COLUMNS = ("start", "track", "id", "category", "name", "ph", "bind_enclosing")
META_COLUMNS = ("name", "pid", "tid")
ASYNC_COLUMNS = ("event", "id")

_HASH_MASK = cython.declare(cython.uint, 0xFFFFFFFF)
_NO_CODE = cython.declare(cython.uint, 0xFFFFFFFF)
_MISSING = cython.declare(cython.longlong, -(1 << 63))
_TEXT_ID = cython.declare(cython.longlong, -(1 << 62))
_TIME_LIMIT = cython.declare(cython.longlong, 4 * 10**18)
_MANTISSA_LIMIT = cython.declare(cython.ulonglong, (1 << 64) // 10 - 1)
_FRACTION_LIMIT = cython.declare(cython.ulonglong, 10**17)
_SIGNED_LIMIT = cython.declare(cython.ulonglong, (1 << 63) - 1)
_UNSIGNED_LIMIT = cython.declare(cython.ulonglong, (1 << 64) - 1)
_NEED = cython.declare(cython.Py_ssize_t, -2)
_BAD = cython.declare(cython.Py_ssize_t, -3)
_EVENTS_PER_PAUSE = cython.declare(cython.Py_ssize_t, 1 << 18)
_DEEPEST = cython.declare(cython.Py_ssize_t, 256)


def room(code: str, count: int) -> memoryview:
    """Zeroed room for `count` items; pages that are never written cost nothing."""
    size = max(count, 1) * array(code).itemsize
    return memoryview(bytearray(size) if size < 1 << 16 else mmap(-1, size)).cast(code)


def _larger(old: memoryview, code: str, count: int) -> memoryview:
    new = room(code, count)
    new[: len(old)] = old
    return new


@cython.final
@cython.cclass
class Strings:
    """Each distinct string once: bytes to a small number, by open addressing."""

    blob: cython.uchar[::1]
    offsets: cython.longlong[::1]
    hashes: cython.uint[::1]
    flags: cython.uchar[::1]
    slots: cython.uint[::1]
    count: cython.Py_ssize_t
    used: cython.Py_ssize_t
    mask: cython.Py_ssize_t
    capacity: cython.Py_ssize_t
    blob_capacity: cython.Py_ssize_t

    def __init__(self) -> None:
        self.count = 0
        self.used = 0
        self.capacity = 1024
        self.blob_capacity = 1 << 16
        self.blob = room("B", self.blob_capacity)
        self.offsets = room("q", self.capacity + 1)
        self.hashes = room("I", self.capacity)
        self.flags = room("B", self.capacity)
        self.slots = room("I", self.capacity * 4)
        self.mask = self.capacity * 4 - 1

    def _grow(self) -> None:
        """Twice the room for strings, and the table laid out anew."""
        self.capacity *= 2
        self.offsets = _larger(memoryview(self.offsets), "q", self.capacity + 1)
        self.hashes = _larger(memoryview(self.hashes), "I", self.capacity)
        self.flags = _larger(memoryview(self.flags), "B", self.capacity)
        self.slots = room("I", self.capacity * 4)
        self.mask = self.capacity * 4 - 1
        self._rehash()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _rehash(self) -> cython.int:
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        for i in range(self.count):
            at = self.hashes[i] & self.mask
            while self.slots[at] != 0:
                at = (at + 1) & self.mask
            self.slots[at] = cython.cast(cython.uint, i + 1)
        return 0

    def _grow_blob(self, size: cython.Py_ssize_t) -> None:
        while self.blob_capacity < size:
            self.blob_capacity *= 2
        self.blob = _larger(memoryview(self.blob), "B", self.blob_capacity)

    def text(self, code: int) -> bytes:
        """The bytes of one string, as they stand in the file."""
        return bytes(memoryview(self.blob)[self.offsets[code] : self.offsets[code + 1]])

    def texts(self) -> list[tuple[bytes, int]]:
        """All strings by code, each with its flags."""
        return [(self.text(code), self.flags[code]) for code in range(self.count)]


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
    strings: Strings
    # The last string, number and value that were read.
    lo: cython.Py_ssize_t
    hi: cython.Py_ssize_t
    hash: cython.uint
    escaped: cython.bint
    mantissa: cython.ulonglong
    exponent: cython.int
    negative: cython.bint
    value: cython.longlong
    fraction: cython.longlong
    powers: cython.ulonglong[::1]
    key_lo: cython.Py_ssize_t
    key_hi: cython.Py_ssize_t
    # Events.
    count: cython.Py_ssize_t
    capacity: cython.Py_ssize_t
    phases: cython.uchar[::1]
    names: cython.uint[::1]
    categories: cython.uint[::1]
    event_tracks: cython.uint[::1]
    starts: cython.longlong[::1]
    durations: cython.longlong[::1]
    # Tracks: pairs of process and thread.
    track_pids: cython.longlong[::1]
    track_tids: cython.longlong[::1]
    track_slots: cython.uint[::1]
    track_count: cython.Py_ssize_t
    track_mask: cython.Py_ssize_t
    # Known arguments: a table of keys, the values in the current event, and the layouts they are written to.
    keys: Strings
    key_slot: cython.int[::1]
    key_type: cython.int[::1]
    slot_value: cython.longlong[::1]
    slot_serial: cython.longlong[::1]
    serial: cython.longlong
    known: cython.Py_ssize_t
    extra: cython.bint
    layout_of_category: cython.int[::1]
    layout_slots: cython.int[::1]
    layout_first: cython.int[::1]
    layout_rows: cython.longlong[::1]
    layout_capacity: cython.Py_ssize_t
    layout_count: cython.int
    cells: cython.longlong[::1]
    trigger_slot: cython.int
    trigger_layout: cython.int
    fallback_slot: cython.int
    fallback_layout: cython.int
    # Flows, metadata, async ids: rows of integers. What no column holds: JSON text by event.
    flows: cython.longlong[::1]
    flow_count: cython.Py_ssize_t
    metas: cython.longlong[::1]
    meta_count: cython.Py_ssize_t
    asyncs: cython.longlong[::1]
    async_count: cython.Py_ssize_t
    rest: cython.uchar[::1]
    rest_events: cython.longlong[::1]
    rest_offsets: cython.longlong[::1]
    rest_count: cython.Py_ssize_t
    # Members of the current event.
    e_phase: cython.int
    e_name: cython.uint
    e_category: cython.uint
    e_pid: cython.longlong
    e_tid: cython.longlong
    e_id: cython.longlong
    e_start: cython.longlong
    e_start_fraction: cython.longlong
    e_dur: cython.longlong
    e_dur_fraction: cython.longlong
    e_bind: cython.int
    e_args_lo: cython.Py_ssize_t
    e_args_hi: cython.Py_ssize_t
    e_has_start: cython.bint
    e_has_dur: cython.bint
    e_out_of_range: cython.bint
    e_members: cython.Py_ssize_t
    e_rest_first: cython.Py_ssize_t
    # What was wrong.
    bad_events: cython.Py_ssize_t
    bad_bytes: cython.Py_ssize_t
    first_bad: cython.Py_ssize_t
    untimed: cython.Py_ssize_t
    out_of_range: cython.Py_ssize_t
    without_duration: cython.Py_ssize_t
    without_phase: cython.Py_ssize_t
    empty: cython.Py_ssize_t
    repaired: cython.Py_ssize_t
    unread_values: cython.Py_ssize_t
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
        self.strings = Strings()
        self.keys = Strings()
        self.pos = self.end = 0
        self.in_events = self.in_document = self.top_is_array = False
        self.powers = array("Q", [int("1" + "0" * k) for k in range(20)])
        self.capacity = max(expected_events, 1024)
        self.phases = room("B", self.capacity)
        self.names = room("I", self.capacity)
        self.categories = room("I", self.capacity)
        self.event_tracks = room("I", self.capacity)
        self.starts = room("q", self.capacity)
        self.durations = room("q", self.capacity)
        self.track_pids = room("q", 1024)
        self.track_tids = room("q", 1024)
        self.track_slots = room("I", 4096)
        self.track_mask = 4095
        self._take_keys(keys, slot_count)
        self._take_layouts(categories, layouts)
        self.trigger_slot, self.trigger_layout = trigger
        self.fallback_slot, self.fallback_layout = fallback
        self.flows = room("q", self.capacity * 7)
        self.metas = room("q", 1024 * 3)
        self.asyncs = room("q", 1024 * 2)
        self.rest = room("B", 1 << 16)
        self.rest_events = room("q", 1024)
        self.rest_offsets = room("q", 1024 + 1)
        self.count = self.track_count = self.flow_count = self.meta_count = self.async_count = 0
        self.rest_count = 0
        self.serial = 0
        self.bad_events = self.bad_bytes = self.untimed = self.out_of_range = 0
        self.without_duration = self.without_phase = self.empty = self.repaired = self.unread_values = 0
        self.first_bad = -1
        self.reads = 0

    def _take_keys(self, keys: list[tuple[bytes, int, int]], slot_count: int) -> None:
        self.key_slot = room("i", len(keys))
        self.key_type = room("i", len(keys))
        self.slot_value = room("q", slot_count)
        self.slot_serial = room("q", slot_count)
        for text, slot, how in keys:
            code = self.code_of(text, True)
            self.key_slot[code] = slot
            self.key_type[code] = how

    def _take_layouts(self, categories: list[tuple[bytes, int]], layouts: list[list[int]]) -> None:
        self.layout_of_category = room("i", len(categories))
        for text, layout in categories:
            self.layout_of_category[self.code_of(text, False)] = layout
        self.layout_count = len(layouts)
        self.layout_slots = array("i", [slot for layout in layouts for slot in layout] or [0])
        firsts = [sum(len(layout) for layout in layouts[:i]) for i in range(len(layouts) + 1)]
        total = sum(len(layout) for layout in layouts)
        self.layout_first = array("i", firsts)
        self.layout_rows = room("q", self.layout_count)
        self.layout_capacity = self.capacity
        self.cells = room("q", self.layout_capacity * (total + self.layout_count))

    def code_of(self, text: bytes, is_key: bool) -> int:
        """The number of a string, which is taken in if it is new."""
        self.buf = text or b"\0"
        self.lo, self.hi, self.escaped = 0, len(text), False
        hashed = 0
        for byte in text:
            hashed = (hashed * 31 + byte) & 0xFFFFFFFF
        self.hash = hashed
        return self._intern(self.keys if is_key else self.strings)

    # --- the public calls -------------------------------------------------------------------------------------

    def feed(self, buf: object, pos: int, stop: int = -1) -> None:
        """Look at this buffer from `pos` on; end with STOPPED at the first event at or past `stop`."""
        self.buf = buf
        self.pos = pos
        self.end = len(buf)
        self.stop = stop if stop >= 0 else self.end + 1

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
        with cython.nogil:
            found = self._resync(self.pos + 1)
        if found >= self.end:
            return False
        self._pass_over(found)
        return True

    def position(self) -> int:
        """Where the scan stands: at the start of what it could not finish."""
        return self.pos

    def key_span(self) -> tuple[int, int]:
        """The name of the member that HEADER told of."""
        return self.key_lo, self.key_hi

    def value_span(self) -> tuple[int, int]:
        """The value of the member that HEADER told of."""
        return self.lo, self.hi

    def is_inside_events(self) -> bool:
        """Whether the scan stands in the list of events."""
        return bool(self.in_events)

    def is_bare_array(self) -> bool:
        """Whether the document is a list of events without an object around it."""
        return bool(self.top_is_array)

    def counts(self) -> dict[str, int]:
        """What was read and what was wrong."""
        return {
            "events": self.count,
            "bad_events": self.bad_events,
            "bad_bytes": self.bad_bytes,
            "first_bad": self.first_bad,
            "untimed": self.untimed,
            "out_of_range": self.out_of_range,
            "without_duration": self.without_duration,
            "without_phase": self.without_phase,
            "empty": self.empty,
            "repaired": self.repaired,
            "unread_values": self.unread_values,
        }

    def events(self) -> dict[str, memoryview]:
        """The columns of all events so far; see EVENT_COLUMNS."""
        n = self.count
        return {
            "ph": memoryview(self.phases)[:n],
            "name": memoryview(self.names)[:n],
            "category": memoryview(self.categories)[:n],
            "track": memoryview(self.event_tracks)[:n],
            "start": memoryview(self.starts)[:n],
            "dur": memoryview(self.durations)[:n],
        }

    def layout(self, number: int) -> list[memoryview]:
        """The columns of one layout: the event's row number, then its slots."""
        cells = memoryview(self.cells)
        first = self.layout_first[number] + number
        width = self.layout_first[number + 1] - self.layout_first[number] + 1
        rows = self.layout_rows[number]
        starts = [(first + column) * self.layout_capacity for column in range(width)]
        return [cells[start : start + rows] for start in starts]

    def texts(self) -> list[tuple[bytes, int]]:
        """Every string by its code, with its flags."""
        return self.strings.texts()

    def tracks(self) -> list[tuple[int, int]]:
        """Process and thread of each track."""
        return [(self.track_pids[i], self.track_tids[i]) for i in range(self.track_count)]

    def flow_rows(self) -> memoryview:
        """Flow events, seven integers each; see FLOW_COLUMNS."""
        return memoryview(self.flows)[: self.flow_count * 7]

    def meta_rows(self) -> memoryview:
        """Metadata events, three integers each (see META_COLUMNS); row n's args are the rest of event -1 - n."""
        return memoryview(self.metas)[: self.meta_count * 3]

    def async_rows(self) -> memoryview:
        """The id of events that have one, two integers each; see ASYNC_COLUMNS."""
        return memoryview(self.asyncs)[: self.async_count * 2]

    def rest_texts(self) -> tuple[memoryview, memoryview, memoryview]:
        """JSON objects that no column holds: the event's row number (metadata: -1 - row), offsets, and the bytes."""
        end = self.rest_offsets[self.rest_count]
        return (
            memoryview(self.rest_events)[: self.rest_count],
            memoryview(self.rest_offsets)[: self.rest_count + 1],
            memoryview(self.rest)[:end],
        )

    # --- the document -----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _run(self) -> cython.Py_ssize_t:
        result: cython.Py_ssize_t
        if not self.in_document:
            result = self._open_document()
            if result != 0:
                return result
        while True:
            if self.in_events:
                result = self._events()
            else:
                result = self._member()
            if result != 0:
                return result

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _open_document(self) -> cython.Py_ssize_t:
        p: cython.Py_ssize_t = self._space(self.pos)
        if p + 2 < self.end and self.buf[p] == 0xEF and self.buf[p + 1] == 0xBB and self.buf[p + 2] == 0xBF:
            p = self._space(p + 3)  # a byte-order mark
        if p >= self.end:
            return 1
        if self.buf[p] == 91:
            self.in_events = True
            self.top_is_array = True
        elif self.buf[p] != 123:
            self.pos = p
            return 6
        self.in_document = True
        self.pos = p + 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _member(self) -> cython.Py_ssize_t:
        """One member of the top-level object: the list of events is entered, any other is told of."""
        p: cython.Py_ssize_t = self._space_and_commas(self.pos)
        lo: cython.Py_ssize_t
        hi: cython.Py_ssize_t
        self.pos = p
        if p >= self.end:
            return 1
        if self.buf[p] == 125:
            self.pos = p + 1
            return 3
        if self.buf[p] != 34:
            return self._lost_member(p)
        p = self._string(p + 1, True)
        if p == _NEED:
            return 1
        if p < 0:
            return self._lost_member(self.pos)
        lo = self.lo
        hi = self.hi
        p = self._space(p)
        if p < self.end and self.buf[p] == 58:
            p = self._space(p + 1)
        if p >= self.end:
            return 1
        if self.buf[p] == 91 and self._is_trace_events(lo, hi):
            self.in_events = True
            self.pos = p + 1
            return 0
        self.value = p
        p = self._skip(p)
        if p == _NEED:
            return 1
        if p < 0:
            return self._lost_member(self.pos)
        self.key_lo = lo
        self.key_hi = hi
        self.lo = cython.cast(cython.Py_ssize_t, self.value)
        self.hi = p
        self.pos = p
        return 2

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _lost_member(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Something unreadable between members: pass on to the next quote or brace."""
        q: cython.Py_ssize_t = p + 1
        while q < self.end and self.buf[q] != 34 and self.buf[q] != 125:
            q += 1
        self._note_bad(p, q - p)
        self.pos = q
        return 0 if q < self.end else 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _is_trace_events(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t) -> cython.int:
        # "traceEvents": t r a c e E v e n t s
        return (
            hi - lo == 11
            and self.buf[lo] == 116
            and self.buf[lo + 1] == 114
            and self.buf[lo + 4] == 101
            and self.buf[lo + 5] == 69
            and self.buf[lo + 6] == 118
            and self.buf[lo + 10] == 115
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _events(self) -> cython.Py_ssize_t:
        p: cython.Py_ssize_t
        q: cython.Py_ssize_t
        until: cython.Py_ssize_t = self.reads + _EVENTS_PER_PAUSE
        while True:
            p = self._space_and_commas(self.pos)
            self.pos = p
            if p >= self.end:
                return 1
            if p >= self.stop:
                return 4
            if self.buf[p] == 123:
                q = self._event(p)
                if q == _NEED:
                    return 1
                if q == _BAD:
                    self._pass_over(self._resync(p + 1))
                    continue
                self.pos = q
                self.reads += 1
                if self.reads >= until:
                    return 5
            elif self.buf[p] == 93:
                self.pos = p + 1
                self.in_events = False
                return 3 if self.top_is_array else 0
            else:
                self._pass_over(self._resync(p + 1))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _pass_over(self, q: cython.Py_ssize_t) -> cython.int:
        self.bad_events += 1
        self._note_bad(self.pos, q - self.pos)
        self.pos = q
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _note_bad(self, p: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        if self.first_bad < 0:
            self.first_bad = p
        self.bad_bytes += count
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _resync(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next place where an event seems to begin: `{` after a comma, bracket or brace, then a key of events."""
        q: cython.Py_ssize_t
        before: cython.int = 0
        c: cython.int
        while p < self.end:
            c = self.buf[p]
            if c == 123 and (before == 44 or before == 91 or before == 125):
                q = self._space(p + 1)
                if q + 4 < self.end and self.buf[q] == 34 and self._is_event_key(q + 1):
                    return p
            if c > 32:
                before = c
            p += 1
        return self.end

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _is_event_key(self, p: cython.Py_ssize_t) -> cython.int:
        """ph, ts, id, cat, dur, pid, tid, name or args, and the quote after it."""
        a: cython.int = self.buf[p]
        b: cython.int = self.buf[p + 1]
        c: cython.int = self.buf[p + 2]
        if c == 34:
            return (a == 112 and b == 104) or (a == 116 and b == 115) or (a == 105 and b == 100)
        if p + 3 >= self.end:
            return False
        if self.buf[p + 3] == 34:
            return (
                (a == 99 and b == 97 and c == 116)
                or (a == 100 and b == 117 and c == 114)
                or ((a == 112 or a == 116) and b == 105 and c == 100)
            )
        if p + 4 >= self.end or self.buf[p + 4] != 34:
            return False
        c = self.buf[p + 3]
        return (a == 110 and b == 97 and c == 101) or (a == 97 and b == 114 and c == 115)

    # --- one event --------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _event(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read the event at `p` into a row. Returns the place after it, _NEED or _BAD."""
        lo: cython.Py_ssize_t
        hi: cython.Py_ssize_t
        c: cython.int
        self._clear_event()
        p += 1
        while True:
            p = self._space(p)
            if p >= self.end:
                return self._undo(_NEED)
            c = self.buf[p]
            if c == 125:
                self._finish_event()
                return p + 1
            if c == 44:
                p += 1
                continue
            if c != 34:
                return self._undo(_BAD)
            p = self._string(p + 1, True)
            if p < 0:
                return self._undo(p)
            lo = self.lo
            hi = self.hi
            p = self._space(p)
            if p >= self.end:
                return self._undo(_NEED)
            if self.buf[p] != 58:
                return self._undo(_BAD)
            p = self._space(p + 1)
            if p >= self.end:
                return self._undo(_NEED)
            self.e_members += 1
            p = self._event_value(lo, hi, p)
            if p < 0:
                return self._undo(p)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _undo(self, result: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Drop the JSON text that was set aside for an event that was not read to its end."""
        self.rest_count = self.e_rest_first
        return result

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _clear_event(self) -> cython.int:
        self.serial += 1
        self.known = 0
        self.extra = False
        self.e_phase = 0
        self.e_name = _NO_CODE
        self.e_category = _NO_CODE
        self.e_pid = _MISSING
        self.e_tid = _MISSING
        self.e_id = _MISSING
        self.e_start = self.e_start_fraction = self.e_dur = self.e_dur_fraction = 0
        self.e_bind = 0
        self.e_args_lo = self.e_args_hi = -1
        self.e_has_start = self.e_has_dur = self.e_out_of_range = False
        self.e_members = 0
        self.e_rest_first = self.rest_count
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _event_value(
        self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, p: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The value of the member named by [lo, hi), at `p`."""
        size: cython.Py_ssize_t = hi - lo
        a: cython.int = self.buf[lo] if size > 0 else 0
        b: cython.int = self.buf[lo + 1] if size > 1 else 0
        if size == 2:
            if a == 112 and b == 104:  # ph
                return self._phase(p)
            if a == 116 and b == 115:  # ts
                p = self._scaled(p, 3)
                if p >= 0 and self.value != _MISSING:
                    self.e_has_start = True
                    self.e_start = self.value
                    self.e_start_fraction = self.fraction
                return p
            if a == 105 and b == 100:  # id
                p = self._identity(p)
                self.e_id = self.value
                return p
            if a == 98 and b == 112:  # bp
                self.e_bind = 1
                return self._skip(p)
        elif size == 3:
            if a == 112 and b == 105 and self.buf[lo + 2] == 100:  # pid
                p = self._identity(p)
                self.e_pid = self.value
                return p
            if a == 116 and b == 105 and self.buf[lo + 2] == 100:  # tid
                p = self._identity(p)
                self.e_tid = self.value
                return p
            if a == 100 and b == 117 and self.buf[lo + 2] == 114:  # dur
                p = self._scaled(p, 3)
                if p >= 0 and self.value != _MISSING:
                    self.e_has_dur = True
                    self.e_dur = self.value
                    self.e_dur_fraction = self.fraction
                return p
            if a == 99 and b == 97 and self.buf[lo + 2] == 116:  # cat
                p = self._text(p)
                if p >= 0:
                    self.e_category = cython.cast(cython.uint, self._code())
                return p
            if a == 105 and b == 100 and self.buf[lo + 2] == 50:  # id2
                p = self._text(p)
                if p >= 0:
                    self.e_id = _TEXT_ID + self._code()
                return p
        elif size == 4:
            if a == 110 and b == 97 and self.buf[lo + 2] == 109 and self.buf[lo + 3] == 101:  # name
                p = self._text(p)
                if p >= 0:
                    self.e_name = cython.cast(cython.uint, self._code())
                return p
            if a == 97 and b == 114 and self.buf[lo + 2] == 103 and self.buf[lo + 3] == 115:  # args
                return self._arguments(p)
        elif size == 1 and a == 115:  # s: how far an instant is drawn
            return self._skip(p)
        return self._unknown_member(lo, p)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _unknown_member(self, lo: cython.Py_ssize_t, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        p = self._skip(p)
        if p >= 0:
            self._set_aside(self.count, lo - 1, p, True)
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _phase(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if self.buf[p] != 34:
            return self._skip(p)
        if p + 1 >= self.end:
            return _NEED
        self.e_phase = self.buf[p + 1]
        return self._string(p + 1, False)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _finish_event(self) -> cython.int:
        start: cython.longlong
        end: cython.longlong
        part: cython.longlong
        if self.e_members == 0:
            self.empty += 1
            return 0
        if self.e_phase == 77:  # M
            self._add_meta()
            return 0
        if self.e_phase == 0:
            self.without_phase += 1
            return self._undo(0)
        if not self.e_has_start:
            if self.e_out_of_range:
                self.out_of_range += 1
            else:
                self.untimed += 1
            return self._undo(0)
        if self.e_out_of_range:
            self.out_of_range += 1
            return self._undo(0)
        start = self.e_start + (1 if self.e_start_fraction >= 500000 else 0)
        if self.e_phase == 115 or self.e_phase == 116 or self.e_phase == 102:  # s t f
            self._add_flow(start)
            return 0
        if self.e_phase == 88 and not self.e_has_dur:
            self.without_duration += 1
        end = self.e_start + self.e_dur
        part = self.e_start_fraction + self.e_dur_fraction
        if part >= 1000000:
            end += 1
            part -= 1000000
        if part >= 500000:
            end += 1
        self._add_event(start, end - start)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_event(self, start: cython.longlong, dur: cython.longlong) -> cython.int:
        row: cython.Py_ssize_t = self.count
        layout: cython.int = 0
        used: cython.Py_ssize_t = 0
        if row >= self.capacity:
            with cython.gil:
                self._grow_events()
        self.phases[row] = cython.cast(cython.uchar, self.e_phase)
        self.names[row] = self.e_name
        self.categories[row] = self.e_category
        self.event_tracks[row] = cython.cast(cython.uint, self._track())
        self.starts[row] = start
        self.durations[row] = dur
        if self.e_category < self.layout_of_category.shape[0]:
            layout = self.layout_of_category[self.e_category]
        if layout == 0 and self.slot_serial[self.fallback_slot] == self.serial:
            layout = self.fallback_layout
        if layout > 0:
            used = self._add_row(layout)
        if self.slot_serial[self.trigger_slot] == self.serial:
            used += self._add_row(self.trigger_layout)
        if self.e_args_lo >= 0 and (self.extra or used < self.known):
            self._set_aside(row, self.e_args_lo, self.e_args_hi, False)
        if self.e_id != _MISSING:
            self._add_async(row)
        self.count = row + 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_row(self, layout: cython.int) -> cython.Py_ssize_t:
        """A row of the layout; returns how many of the event's known arguments it holds."""
        row: cython.longlong = self.layout_rows[layout]
        first: cython.int = self.layout_first[layout]
        width: cython.int = self.layout_first[layout + 1] - first
        at: cython.Py_ssize_t
        slot: cython.int
        i: cython.int
        held: cython.Py_ssize_t = 0
        if row >= self.layout_capacity:
            with cython.gil:
                self._grow_layouts()
        at = (first + layout) * self.layout_capacity + cython.cast(cython.Py_ssize_t, row)
        self.cells[at] = self.count
        for i in range(width):
            at += self.layout_capacity
            slot = self.layout_slots[first + i]
            if self.slot_serial[slot] == self.serial:
                self.cells[at] = self.slot_value[slot]
                held += 1
            else:
                self.cells[at] = _MISSING
        self.layout_rows[layout] = row + 1
        return held

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_flow(self, start: cython.longlong) -> cython.int:
        at: cython.Py_ssize_t = self.flow_count * 7
        if at + 7 > self.flows.shape[0]:
            with cython.gil:
                self.flows = _larger(memoryview(self.flows), "q", 2 * len(self.flows) + 7)
        self.flows[at] = start
        self.flows[at + 1] = self._track()
        self.flows[at + 2] = self.e_id
        self.flows[at + 3] = self.e_category
        self.flows[at + 4] = self.e_name
        self.flows[at + 5] = self.e_phase
        self.flows[at + 6] = self.e_bind
        self.flow_count += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_meta(self) -> cython.int:
        at: cython.Py_ssize_t = self.meta_count * 3
        if at + 3 > self.metas.shape[0]:
            with cython.gil:
                self.metas = _larger(memoryview(self.metas), "q", 2 * len(self.metas))
        self.metas[at] = self.e_name
        self.metas[at + 1] = self.e_pid
        self.metas[at + 2] = self.e_tid
        self._undo(0)
        if self.e_args_lo >= 0:
            self._set_aside(-1 - self.meta_count, self.e_args_lo, self.e_args_hi, False)
        self.meta_count += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_async(self, row: cython.Py_ssize_t) -> cython.int:
        at: cython.Py_ssize_t = self.async_count * 2
        if at + 2 > self.asyncs.shape[0]:
            with cython.gil:
                self.asyncs = _larger(memoryview(self.asyncs), "q", 2 * len(self.asyncs))
        self.asyncs[at] = row
        self.asyncs[at + 1] = self.e_id
        self.async_count += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _set_aside(
        self, event: cython.Py_ssize_t, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, bare: cython.bint
    ) -> cython.int:
        """Keep the JSON text [lo, hi) for the event; a bare member gets braces round it."""
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t = self.rest_count
        at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.rest_offsets[row])
        if at + hi - lo + 2 > self.rest.shape[0]:
            with cython.gil:
                self.rest = _larger(memoryview(self.rest), "B", 2 * (at + hi - lo + 2))
        if row >= self.rest_events.shape[0]:
            with cython.gil:
                self.rest_events = _larger(memoryview(self.rest_events), "q", 2 * row)
                self.rest_offsets = _larger(memoryview(self.rest_offsets), "q", 2 * row + 1)
        self.rest_events[row] = event
        if bare:
            self.rest[at] = 123
            at += 1
        for i in range(lo, hi):
            self.rest[at] = self.buf[i]
            at += 1
        if bare:
            self.rest[at] = 125
            at += 1
        self.rest_offsets[row + 1] = at
        self.rest_count = row + 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _track(self) -> cython.Py_ssize_t:
        """The number of the event's (process, thread)."""
        at: cython.Py_ssize_t = self._track_hash(self.e_pid, self.e_tid)
        found: cython.uint
        while self.track_slots[at] != 0:
            found = self.track_slots[at] - 1
            if self.track_pids[found] == self.e_pid and self.track_tids[found] == self.e_tid:
                return found
            at = (at + 1) & self.track_mask
        found = cython.cast(cython.uint, self.track_count)
        if self.track_count >= self.track_pids.shape[0]:
            with cython.gil:
                self._grow_tracks()
            at = self._track_hash(self.e_pid, self.e_tid)
            while self.track_slots[at] != 0:
                at = (at + 1) & self.track_mask
        self.track_slots[at] = found + 1
        self.track_pids[found] = self.e_pid
        self.track_tids[found] = self.e_tid
        self.track_count += 1
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _track_hash(self, pid: cython.longlong, tid: cython.longlong) -> cython.Py_ssize_t:
        low: cython.ulonglong = cython.cast(cython.ulonglong, (pid & 0x7FFFFFFF) * 31 + (tid & 0x7FFFFFFF))
        return cython.cast(cython.Py_ssize_t, (low * 40503) & self.track_mask)

    def _grow_tracks(self) -> None:
        count = 2 * len(self.track_pids)
        self.track_pids = _larger(memoryview(self.track_pids), "q", count)
        self.track_tids = _larger(memoryview(self.track_tids), "q", count)
        self.track_slots = room("I", count * 4)
        self.track_mask = count * 4 - 1
        for i in range(self.track_count):
            at = self._track_hash(self.track_pids[i], self.track_tids[i])
            while self.track_slots[at] != 0:
                at = (at + 1) & self.track_mask
            self.track_slots[at] = i + 1

    def _grow_events(self) -> None:
        self.capacity *= 2
        self.phases = _larger(memoryview(self.phases), "B", self.capacity)
        self.names = _larger(memoryview(self.names), "I", self.capacity)
        self.categories = _larger(memoryview(self.categories), "I", self.capacity)
        self.event_tracks = _larger(memoryview(self.event_tracks), "I", self.capacity)
        self.starts = _larger(memoryview(self.starts), "q", self.capacity)
        self.durations = _larger(memoryview(self.durations), "q", self.capacity)

    def _grow_layouts(self) -> None:
        old = memoryview(self.cells)
        before = self.layout_capacity
        after = before * 2
        columns = len(old) // before
        new = room("q", after * columns)
        for layout in range(self.layout_count):
            rows = self.layout_rows[layout]
            for column in range(self.layout_first[layout] + layout, self.layout_first[layout + 1] + layout + 1):
                new[column * after : column * after + rows] = old[column * before : column * before + rows]
        self.cells = new
        self.layout_capacity = after

    # --- arguments --------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _arguments(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The args of an event: known ones into their slots, and where the text lies."""
        begin: cython.Py_ssize_t = p
        c: cython.int
        key: cython.Py_ssize_t
        if self.buf[p] != 123:
            p = self._skip(p)
            return p
        p += 1
        while True:
            p = self._space(p)
            if p >= self.end:
                return _NEED
            c = self.buf[p]
            if c == 125:
                self.e_args_lo = begin
                self.e_args_hi = p + 1
                return p + 1
            if c == 44:
                p += 1
                continue
            if c != 34:
                return _BAD
            p = self._string(p + 1, True)
            if p < 0:
                return p
            key = self._find_key()
            p = self._space(p)
            if p >= self.end:
                return _NEED
            if self.buf[p] != 58:
                return _BAD
            p = self._space(p + 1)
            if p >= self.end:
                return _NEED
            if key < 0:
                self.extra = True
                p = self._skip(p)
            else:
                p = self._argument(self.key_slot[key], self.key_type[key], p)
            if p < 0:
                return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _argument(self, slot: cython.int, how: cython.int, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if how == 0:
            p = self._integer(p)
        elif how == 1:
            p = self._scaled(p, 9)
            if p >= 0 and self.value != _MISSING and self.fraction >= 500000:
                self.value += 1
        elif how == 3:
            return self._triple(slot, p)
        else:
            p = self._text(p)
            if p >= 0:
                self.value = self._code()
        if p < 0:
            return p
        if self.value == _MISSING:
            self.extra = True
            return p
        self._set_slot(slot, self.value)
        self.known += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _set_slot(self, slot: cython.int, value: cython.longlong) -> cython.int:
        self.slot_value[slot] = value
        self.slot_serial[slot] = self.serial
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _triple(self, slot: cython.int, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """[x, y, z] into three slots; anything else is left to the JSON text."""
        begin: cython.Py_ssize_t = p
        i: cython.int = 0
        if self.buf[p] != 91:
            self.extra = True
            return self._skip(p)
        p += 1
        while True:
            p = self._space_and_commas(p)
            if p >= self.end:
                return _NEED
            if self.buf[p] == 93 and i == 3:
                self.known += 3
                return p + 1
            if i == 3 or self.buf[p] == 93 or self.buf[p] == 91 or self.buf[p] == 123:
                break
            p = self._integer(p)
            if p < 0:
                return p
            if self.value == _MISSING:
                break
            self._set_slot(slot + i, self.value)
            i += 1
        for i in range(3):
            self.slot_serial[slot + i] = 0
        self.extra = True
        return self._skip(begin)

    # --- values -----------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _text(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A string's content, or the JSON text of another value, as [lo, hi) with its hash."""
        i: cython.Py_ssize_t
        h: cython.uint = 0
        if self.buf[p] == 34:
            return self._string(p + 1, False)
        i = p
        p = self._skip(p)
        if p < 0:
            return p
        self.lo = i
        self.hi = p
        self.escaped = False
        while i < p:
            h = (h * 31 + self.buf[i]) & _HASH_MASK
            i += 1
        self.hash = h
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _identity(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A pid, tid or id: an integer, or the code of a string."""
        if self.buf[p] != 34:
            p = self._integer(p)
            if p < 0 or self.value != _MISSING:
                return p
            return p
        p = self._string(p + 1, False)
        if p >= 0:
            self.value = _TEXT_ID + self._code()
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _integer(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A whole number, a bool, or a string that holds one, in `value`; MISSING if it is something else."""
        c: cython.int = self.buf[p]
        if c == 116 or c == 102:  # true, false
            p = self._skip(p)
            self.value = 1 if c == 116 else 0
            return p
        p = self._number(p)
        if p < 0 or self.value == _MISSING:
            return p
        if self.exponent != 0:
            self._scale(0)
            if self.value != _MISSING and self.fraction >= 500000:
                self.value += 1
            return p
        self._signed()
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _signed(self) -> cython.int:
        """The mantissa as a signed 64-bit number; unsigned ones above 2^63 wrap, as addresses must."""
        if self.mantissa > _SIGNED_LIMIT:
            self.value = -1 - cython.cast(cython.longlong, _UNSIGNED_LIMIT - self.mantissa)
        else:
            self.value = cython.cast(cython.longlong, self.mantissa)
        if self.negative:
            self.value = -self.value
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _scaled(self, p: cython.Py_ssize_t, power: cython.int) -> cython.Py_ssize_t:
        """A decimal number times 10^power: `value` rounded down, `fraction` in millionths; MISSING if none."""
        p = self._number(p)
        if p < 0:
            return p
        if self.value == _MISSING:
            self.unread_values += 1
            return p
        self._scale(power)
        if self.value == _MISSING:
            self.e_out_of_range = True
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _scale(self, power: cython.int) -> cython.int:
        e: cython.int = self.exponent + power
        m: cython.ulonglong = self.mantissa
        q: cython.ulonglong
        r: cython.ulonglong = 0
        part: cython.longlong = 0
        if m == 0:
            q = 0
        elif e >= 0:
            while e > 0 and m <= _MANTISSA_LIMIT:
                m *= 10
                e -= 1
            if e > 0:
                self.value = _MISSING
                return 0
            q = m
        elif e < -19:
            q = 0
        else:
            q = m // self.powers[-e]
            r = m - q * self.powers[-e]
            if e >= -6:
                part = cython.cast(cython.longlong, r * self.powers[6 + e])
            else:
                part = cython.cast(cython.longlong, r // self.powers[-e - 6])
        if q > cython.cast(cython.ulonglong, _TIME_LIMIT):
            self.value = _MISSING
            return 0
        self.value = cython.cast(cython.longlong, q)
        self.fraction = part
        if self.negative:
            self.value = -self.value
            if part > 0:
                self.value -= 1
                self.fraction = 1000000 - part
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _number(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A number, bare or quoted, as mantissa and exponent; `value` is MISSING if there is none, and it is passed."""
        begin: cython.Py_ssize_t = p
        m: cython.ulonglong = 0
        exponent: cython.int = 0
        power: cython.int = 0
        digits: cython.int = 0
        d: cython.int
        quoted: cython.bint = self.buf[p] == 34
        down: cython.bint = False
        if quoted:
            p += 1
        self.negative = False
        if p < self.end and (self.buf[p] == 45 or self.buf[p] == 43):
            self.negative = self.buf[p] == 45
            p += 1
        while p < self.end:
            d = cython.cast(cython.int, self.buf[p]) - 48
            if d < 0 or d > 9:
                break
            if m <= _MANTISSA_LIMIT:
                m = m * 10 + d
            else:
                exponent += 1
            digits += 1
            p += 1
        if p < self.end and self.buf[p] == 46:
            p += 1
            while p < self.end:
                d = cython.cast(cython.int, self.buf[p]) - 48
                if d < 0 or d > 9:
                    break
                if m < _FRACTION_LIMIT:
                    m = m * 10 + d
                    exponent -= 1
                digits += 1
                p += 1
        if digits > 0 and p < self.end and (self.buf[p] == 101 or self.buf[p] == 69):
            p += 1
            if p < self.end and (self.buf[p] == 45 or self.buf[p] == 43):
                down = self.buf[p] == 45
                p += 1
            while p < self.end:
                d = cython.cast(cython.int, self.buf[p]) - 48
                if d < 0 or d > 9:
                    break
                if power < 1000:
                    power = power * 10 + d
                p += 1
            exponent += -power if down else power
        if p >= self.end:
            return _NEED
        if quoted and self.buf[p] == 34:
            p += 1
            quoted = False
        if digits == 0 or quoted or not self._ends_value(p):
            self.value = _MISSING
            return self._skip(begin)
        self.mantissa = m
        self.exponent = exponent
        self.value = 0
        self.fraction = 0
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _ends_value(self, p: cython.Py_ssize_t) -> cython.int:
        c: cython.int
        if p >= self.end:
            return True
        c = self.buf[p]
        return c <= 32 or c == 44 or c == 125 or c == 93

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _space(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        while p < self.end and self.buf[p] <= 32:
            p += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _space_and_commas(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        while p < self.end and (self.buf[p] <= 32 or self.buf[p] == 44):
            p += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _string(self, p: cython.Py_ssize_t, is_key: cython.bint) -> cython.Py_ssize_t:
        """The string whose content begins at `p`, as [lo, hi) with its hash. Returns the place after its quote.

        A quote that nothing may follow is taken as part of the text: writers forgot to escape it.
        """
        begin: cython.Py_ssize_t = p
        h: cython.uint = 0
        c: cython.int
        mended: cython.bint = False
        self.escaped = False
        while p < self.end:
            c = self.buf[p]
            if c == 34:
                if self._ends_string(p + 1, is_key):
                    self.lo = begin
                    self.hi = p
                    self.hash = h
                    if mended:
                        self.repaired += 1
                    return p + 1
                if p + 1 >= self.end or self._space(p + 1) >= self.end:
                    return _NEED
                if is_key:
                    return _BAD
                mended = True
            elif c == 92:
                self.escaped = True
                h = (h * 31 + 92) & _HASH_MASK
                p += 1
                if p >= self.end:
                    return _NEED
                c = self.buf[p]
            elif c == 10 and (mended or is_key):
                return _BAD
            h = (h * 31 + c) & _HASH_MASK
            p += 1
        return _NEED

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _ends_string(self, p: cython.Py_ssize_t, is_key: cython.bint) -> cython.int:
        """Whether what follows a quote at `p - 1` shows that it closed the string."""
        c: cython.int
        while p < self.end:
            c = self.buf[p]
            if c > 32:
                if is_key:
                    return c == 58
                return c == 44 or c == 125 or c == 93
            p += 1
        return False

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _skip(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place after the value at `p`, whatever it is: bare words such as N/A count as values."""
        depth: cython.Py_ssize_t = 0
        c: cython.int
        while p < self.end:
            c = self.buf[p]
            if c == 34:
                p = self._skip_string(p + 1)
                if p < 0:
                    return p
                if depth == 0:
                    return p
                continue
            if c == 123 or c == 91:
                depth += 1
                if depth > _DEEPEST:
                    return _BAD
            elif c == 125 or c == 93:
                if depth == 0:
                    return p
                depth -= 1
                if depth == 0:
                    return p + 1
            elif depth == 0 and c == 44:
                return p
            p += 1
        return _NEED

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _skip_string(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        q: cython.Py_ssize_t
        c: cython.int
        mended: cython.bint = False
        while p < self.end:
            c = self.buf[p]
            if c == 34:
                q = self._space(p + 1)
                if q >= self.end:
                    return _NEED
                c = self.buf[q]
                if c == 44 or c == 125 or c == 93 or c == 58:
                    return p + 1
                mended = True
            elif c == 92:
                p += 1
            elif c == 10 and mended:
                return _BAD
            p += 1
        return _NEED

    # --- strings to numbers -----------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _code(self) -> cython.Py_ssize_t:
        return self._intern(self.strings)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _intern(self, strings: Strings) -> cython.Py_ssize_t:
        """The number of the string [lo, hi) with its hash."""
        at: cython.Py_ssize_t = self.hash & strings.mask
        size: cython.Py_ssize_t = self.hi - self.lo
        found: cython.uint
        i: cython.Py_ssize_t
        while strings.slots[at] != 0:
            found = strings.slots[at] - 1
            if strings.hashes[found] == self.hash and self._same(strings, found, size):
                return found
            at = (at + 1) & strings.mask
        if strings.count >= strings.capacity - 1:
            with cython.gil:
                strings._grow()
            at = self.hash & strings.mask
            while strings.slots[at] != 0:
                at = (at + 1) & strings.mask
        if strings.used + size > strings.blob_capacity:
            with cython.gil:
                strings._grow_blob(strings.used + size)
        found = cython.cast(cython.uint, strings.count)
        for i in range(size):
            strings.blob[strings.used + i] = self.buf[self.lo + i]
        strings.used += size
        strings.hashes[found] = self.hash
        strings.flags[found] = 1 if self.escaped else 0
        strings.offsets[found + 1] = strings.used
        strings.slots[at] = found + 1
        strings.count += 1
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _find_key(self) -> cython.Py_ssize_t:
        """The number of the known argument [lo, hi), or -1."""
        at: cython.Py_ssize_t = self.hash & self.keys.mask
        size: cython.Py_ssize_t = self.hi - self.lo
        found: cython.uint
        while self.keys.slots[at] != 0:
            found = self.keys.slots[at] - 1
            if self.keys.hashes[found] == self.hash and self._same(self.keys, found, size):
                return found
            at = (at + 1) & self.keys.mask
        return -1

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, which is the length of the buffer
    @cython.exceptval(-9)
    def _same(self, strings: Strings, code: cython.uint, size: cython.Py_ssize_t) -> cython.int:
        first: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, strings.offsets[code])
        i: cython.Py_ssize_t
        if strings.offsets[code + 1] - first != size:
            return False
        for i in range(size):
            if strings.blob[first + i] != self.buf[self.lo + i]:
                return False
        return True
