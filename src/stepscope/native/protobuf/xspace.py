# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""The events and stats of an XSpace as columns, by the million.

Lines come in chunks (see `wire.Splitter`), so that decoders in several threads can share a file. A chunk that finds a column
full is undone, and decoded again with more room. What breaks inside an event costs its rest, and is counted.
"""

from __future__ import annotations

from array import array
from typing import Any

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

# The part that a stat has in linking events, given by its name.
PRODUCER_ID, PRODUCER_TYPE, CONSUMER_ID, CONSUMER_TYPE = range(1, 5)
# Marks the row of a name as unknown; the bits below are of the id that nobody named.
UNNAMED = 0x80000000
# The flag of events that count occurrences instead of lying in time; other flags come from stats.
AGGREGATE = 128

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_LAST_SIGNED = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
_LAST_KEY = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_UNNAMED = cython.declare(cython.uint, UNNAMED)
_LOW = cython.declare(cython.longlong, 0xFFFFFFFF)
# Beyond 53 days from its line's start a time is damage; within, sums stay in 64 bits.
_FARTHEST_PS = cython.declare(cython.longlong, (1 << 62) - 1000)


@cython.final
@cython.cclass
class Rows:
    """Columns that grow together: an owner, a key, and a value or the span of one."""

    count: cython.Py_ssize_t
    room: cython.Py_ssize_t
    short: cython.bint
    owner: cython.uint[::1]
    key: cython.uint[::1]
    value: cython.longlong[::1]
    last: cython.longlong[::1]

    def __init__(self) -> None:
        self.count = self.room = 0
        self.short = False

    def reserve(self, owner: Any, key: Any, value: Any, last: Any) -> None:
        """Go on in these columns, which hold all that was put so far."""
        self.owner, self.key, self.value, self.last = owner, key, value, last
        self.room = len(owner)
        self.short = False

    def state(self) -> tuple[int, bool]:
        """How many rows there are, and whether one found no room."""
        return self.count, self.short

    def cut(self, count: cython.Py_ssize_t) -> None:
        """Forget the rows from `count` on."""
        self.count = count

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-9)
    def put(
        self, owner: cython.uint, key: cython.uint, value: cython.longlong, last: cython.Py_ssize_t
    ) -> cython.int:
        """Add a row, of a value or of a span that ends at `last`; 1 where there is no room for it."""
        row: cython.Py_ssize_t = self.count
        if row >= self.room:
            self.short = True
            return 1
        self.owner[row] = owner
        self.key[row] = key
        self.value[row] = value
        if last:
            self.last[row] = last
        self.count = row + 1
        return 0


@cython.final
@cython.cclass
class Decoder:
    """Decodes the events of some chunks, or stats that lie elsewhere."""

    data: cython.const[cython.uchar][::1]
    size: cython.Py_ssize_t
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    # The field read last: what it is, and its value or where its payload begins (it ends at `at`).
    number: cython.uint
    wire: cython.uint
    value: cython.ulonglong
    begin: cython.Py_ssize_t
    # The table of names (see `names.table`), what they mean by their rows, and the last of stats.
    slot_domain: cython.const[cython.uint][::1]
    slot_id: cython.const[cython.longlong][::1]
    slot_row: cython.const[cython.uint][::1]
    odd: cython.ulonglong
    shift: cython.int
    mask: cython.ulonglong
    stat_part: cython.const[cython.uchar][::1]
    stat_flag: cython.const[cython.uchar][::1]
    name_class: cython.const[cython.uchar][::1]
    kinds: cython.const[cython.uchar][::1]
    duration: cython.uint
    # The lines, by number.
    line_plane: cython.const[cython.uint][::1]
    line_class: cython.const[cython.uchar][::1]
    line_time: cython.const[cython.longlong][::1]
    # Of the event at hand: its plane, what its stats say of its kind, the stats that link it, no room for it.
    plane: cython.uint
    flags: cython.uint
    linked: cython.uint
    part: cython.longlong[::1]
    full: cython.int
    # Columns of events, and where the next one goes.
    row: cython.Py_ssize_t
    track: cython.uint[::1]
    name: cython.uint[::1]
    start: cython.longlong[::1]
    dur: cython.longlong[::1]
    kind: cython.uchar[::1]
    # Stats by the type of their value, and the events that link to others.
    ints: Rows
    words: Rows
    reals: Rows
    refs: Rows
    strings: Rows
    blobs: Rows
    producers: Rows
    consumers: Rows
    # What went wrong: events or stats that broke off, fields that nobody knows, times beyond reason.
    damaged: cython.Py_ssize_t
    unknown: cython.Py_ssize_t
    clamped: cython.Py_ssize_t

    def __init__(self, data: object, names: tuple[array[int], array[int], array[int]], odd: int) -> None:
        self.data = data
        self.size = len(self.data)
        self.slot_domain, self.slot_id, self.slot_row = names
        self.odd = odd
        self.mask = len(self.slot_row) - 1
        self.shift = 65 - len(self.slot_row).bit_length()
        self.part = array("q", bytes(8 * 5))
        self.full = self.row = self.flags = self.linked = 0
        self.damaged = self.unknown = self.clamped = 0
        self.ints, self.words, self.reals, self.refs = Rows(), Rows(), Rows(), Rows()
        self.strings, self.blobs, self.producers, self.consumers = Rows(), Rows(), Rows(), Rows()

    def lines(self, plane: array[int], line_class: bytes, time: array[int]) -> None:
        """The lines that chunks name by number, each a track."""
        self.line_plane, self.line_class, self.line_time = plane, line_class, time

    def meaning(self, stat_part: bytes, stat_flag: bytes, name_class: bytes, kinds: bytes) -> None:
        """What stat names mean for links and flags (the last two: occurrences, their duration), and names for kinds."""
        self.stat_part, self.stat_flag, self.name_class, self.kinds = stat_part, stat_flag, name_class, kinds
        self.duration = len(stat_part) - 1

    def columns(self, row: int, events: list[Any]) -> None:
        """The columns of all events: track, name, start, dur, kind. This decoder's part begins at `row`."""
        self.row = row
        self.track, self.name, self.start, self.dur, self.kind = events

    def rows(self) -> dict[str, Rows]:
        """Stats by the type of their value (reals as bits, strings and blobs as spans), and what links events."""
        return {
            "ints": self.ints, "words": self.words, "reals": self.reals, "refs": self.refs, "strings": self.strings,
            "blobs": self.blobs, "producers": self.producers, "consumers": self.consumers,
        }  # fmt: skip

    def trouble(self) -> tuple[int, int, int]:
        """How often it was damaged, unknown, clamped."""
        return self.damaged, self.unknown, self.clamped

    def chunk(self, line: cython.uint, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> bool:
        """Decode the events of a chunk; False where a column is full."""
        after: cython.Py_ssize_t
        self.plane = self.line_plane[line]
        self.at = min(max(first, 0), self.size)
        last = self.end = min(last, self.size)
        with cython.nogil:
            while self._next() and not self.full:
                if self.number == 4 and self.wire == 2:
                    after = self.at
                    self._event(line, self.begin, after)
                    self.at = after
                    self.end = last
        return not self.full

    def stats(
        self,
        owner: cython.const[cython.uint][::1],
        plane: cython.const[cython.uint][::1],
        first: cython.const[cython.longlong][::1],
        last: cython.const[cython.longlong][::1],
    ) -> bool:
        """Decode single stats, each with its owner; False where a column is full."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(owner)
        with cython.nogil:
            for i in range(n):
                self.plane = plane[i]
                if 0 <= first[i] <= last[i] <= self.size:
                    self._stat(owner[i], first[i], last[i])
        return not self.full

    def mark(self) -> list[int]:
        """Where things stand, for `undo`."""
        return [
            self.row,
            self.damaged,
            self.unknown,
            self.clamped,
            *(rows.state()[0] for rows in self.rows().values()),
        ]

    def undo(self, mark: list[int]) -> None:
        """Go back to where things stood."""
        self.row, self.damaged, self.unknown, self.clamped = mark[:4]
        for i, rows in enumerate(self.rows().values()):
            rows.cut(mark[4 + i])
        self.full = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _event(self, line: cython.uint, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        name: cython.longlong = 0
        offset: cython.longlong = 0
        dur: cython.longlong = 0
        times: cython.longlong = 0
        row: cython.uint = cython.cast(cython.uint, self.row)
        self.flags = self.linked = 0
        self.at = first
        self.end = last
        while self._next():
            if self.wire == 0:
                if self.number == 1:
                    name = _signed(self.value)
                elif self.number == 2:
                    offset = _signed(self.value)
                elif self.number == 3:
                    dur = _signed(self.value)
                elif self.number == 5:
                    times = _signed(self.value)
                    self.flags |= 128
                else:
                    self.unknown += 1
            elif self.number == 4 and self.wire == 2:
                first = self.at
                self._stat(row, self.begin, first)
                self.at = first
                self.end = last
            else:
                self.unknown += 1
        if self.flags & 128:
            self.full |= self.ints.put(row, self.duration - 1, times, 0)
            self.full |= self.ints.put(row, self.duration, dur, 0)
            offset = dur = 0
        if self.linked:
            self._link(row)
        if not self.full:
            self._put(line, name, offset, dur)
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-9)
    def _put(
        self, line: cython.uint, ident: cython.longlong, offset: cython.longlong, dur: cython.longlong
    ) -> cython.int:
        """Write the event's columns. Start and end are rounded to the same grid, so that nesting and sums survive."""
        row: cython.Py_ssize_t = self.row
        name: cython.uint = self._named(2 * self.plane, ident)
        place: cython.Py_ssize_t = self.line_class[line]
        place = place * 16 + (0 if name & _UNNAMED else self.name_class[name])
        if not (-_FARTHEST_PS <= offset <= _FARTHEST_PS and -_FARTHEST_PS <= dur <= _FARTHEST_PS):
            offset = min(max(offset, -_FARTHEST_PS), _FARTHEST_PS)
            dur = min(max(dur, -_FARTHEST_PS), _FARTHEST_PS)
            self.clamped += 1
        dur = _nanoseconds(offset + dur)
        offset = _nanoseconds(offset)
        self.track[row] = line
        self.name[row] = name
        self.start[row] = self.line_time[line] + offset
        self.dur[row] = dur - offset
        self.kind[row] = self.kinds[place * 256 + self.flags]
        self.row = row + 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _stat(self, owner: cython.uint, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        key: cython.longlong = 0
        form: cython.uint = 0
        value: cython.ulonglong = 0
        self.at = first
        self.end = last
        while self._next():
            if self.wire == 0 and self.number == 1:
                key = _signed(self.value)
            elif self.wire == 0 and (self.number == 3 or self.number == 4 or self.number == 7):
                form = self.number
                value = self.value
            elif self.wire == 1 and self.number == 2:
                form = self.number
                value = self.value
            elif self.wire == 2 and (self.number == 5 or self.number == 6):
                form = self.number
                first = self.begin
                last = self.at
            else:
                self.unknown += 1
        return self._keep(owner, self._named(2 * self.plane + 1, key), form, value, first, last)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-9)
    def _keep(
        self,
        owner: cython.uint,
        key: cython.uint,
        form: cython.uint,
        value: cython.ulonglong,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
    ) -> cython.int:
        """Store a stat by the type of its value, and note what it says of its event."""
        part: cython.uint = 0
        if not key & _UNNAMED:
            self.flags |= self.stat_flag[key]
            part = self.stat_part[key]
        if part and (form == 3 or form == 4):
            self.part[part] = _signed(value)
            self.linked |= cython.cast(cython.uint, 1) << part
            return 0  # `_link` keeps it
        if form == 4 or (form == 3 and value <= _LAST_SIGNED):
            self.full |= self.ints.put(owner, key, _signed(value), 0)
        elif form == 3:
            self.full |= self.words.put(owner, key, _signed(value), 0)
        elif form == 2:
            self.full |= self.reals.put(owner, key, _signed(value), 0)
        elif form == 5:
            self.full |= self.strings.put(owner, key, first, last)
        elif form == 6:
            self.full |= self.blobs.put(owner, key, first, last)
        elif form == 7:
            part = self._named(2 * self.plane + 1, _signed(value))
            if part & _UNNAMED:  # the name of no stat: its number is kept
                self.full |= self.ints.put(owner, key, _signed(value), 0)
            else:
                self.full |= self.refs.put(owner, key, part, 0)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _link(self, row: cython.uint) -> cython.int:
        key: cython.longlong
        if self.linked & 2:
            key = self.part[2] if self.linked & 4 else 0
            self.full |= self.producers.put(row, cython.cast(cython.uint, key & _LOW), self.part[1], 0)
        if self.linked & 8:
            key = self.part[4] if self.linked & 16 else 0
            self.full |= self.consumers.put(row, cython.cast(cython.uint, key & _LOW), self.part[3], 0)
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _named(self, domain: cython.uint, ident: cython.longlong) -> cython.uint:
        """The row of this name; without one, the low bits of the id under a mark."""
        at: cython.ulonglong = domain
        at = ((cython.cast(cython.ulonglong, ident) ^ (at << 40)) * self.odd) & _ALL_BITS
        at = at >> self.shift
        while self.slot_row[at]:
            if self.slot_id[at] == ident and self.slot_domain[at] == domain:
                return self.slot_row[at] - 1
            at = (at + 1) & self.mask
        return _UNNAMED | cython.cast(cython.uint, ident & 0x7FFFFFFF)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _varint(self, at: cython.Py_ssize_t) -> cython.int:
        """Read a varint into `value`; 0 where it is cut or longer than ten bytes."""
        end: cython.Py_ssize_t = self.end
        shift: cython.int = 0
        byte: cython.ulonglong
        value: cython.ulonglong = 0
        while at < end and shift < 70:
            byte = self.data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                self.value = value & _ALL_BITS
                self.at = at
                return 1
            shift += 7
        return 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-9)
    def _next(self) -> cython.int:
        """Step to the next field; 0 at the end, or where the framing is lost, which is counted."""
        at: cython.Py_ssize_t = self.at
        end: cython.Py_ssize_t = self.end
        key: cython.ulonglong
        value: cython.ulonglong
        if at >= end:
            return 0
        key = self.data[at]
        at += 1
        if key >= 128:
            if self._varint(at - 1) == 0 or self.value > _LAST_KEY:
                return self._lose()
            key = self.value
            at = self.at
        self.number = cython.cast(cython.uint, key >> 3)
        self.wire = cython.cast(cython.uint, key & 7)
        if key < 8 or at >= end or (self.wire != 0 and self.wire != 2):
            self.at = at
            return 1 if key >= 8 and self._fixed() else self._lose()
        value = self.data[at]
        at += 1
        if value >= 128:
            if self._varint(at - 1) == 0:
                return self._lose()
            value = self.value
            at = self.at
        if self.wire == 0:
            self.value = value
        else:
            if value > cython.cast(cython.ulonglong, end - at):
                return self._lose()
            self.begin = at
            at += cython.cast(cython.Py_ssize_t, value)
        self.at = at
        return 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _lose(self) -> cython.int:
        self.damaged += 1
        self.at = self.end
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _fixed(self) -> cython.int:
        """Read a value of eight or four bytes; 0 where there is none, as in groups, which these messages never had."""
        i: cython.Py_ssize_t
        byte: cython.ulonglong
        width: cython.Py_ssize_t = 8 if self.wire == 1 else 4
        if (self.wire != 1 and self.wire != 5) or self.end - self.at < width:
            return 0
        self.value = 0
        for i in range(width):
            byte = self.data[self.at + i]
            self.value |= byte << (8 * i)
        self.at += width
        return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _nanoseconds(ps: cython.longlong) -> cython.longlong:
    """Picoseconds to the nearest nanosecond, halves upwards, for either sign and either way that // rounds."""
    ps += 500
    return ps // 1000 - (1 if ps % 1000 < 0 else 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(value: cython.ulonglong) -> cython.longlong:
    """The same 64 bits as a signed number; plain Python has no wrap-around to rely on."""
    if value > _LAST_SIGNED:
        return -cython.cast(cython.longlong, _ALL_BITS - value) - 1
    return cython.cast(cython.longlong, value)
