# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Protobuf on the wire: messages split into fields, and the events of an XSpace into columns, by the million.

The bytes are not trusted. A field that runs past its message is clipped, a message whose framing is lost is left where
that happened, and both are counted; depth is fixed by the format, so nothing recurses.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

VARINT = 0
FIXED64 = 1
BYTES = 2
# Added to the form of a field that its message cuts short.
CUT = 8
# What `_next` answers: no field left, framing lost, a field, a field that its message cuts short.
_END = cython.declare(cython.int, 0)
_LOST = cython.declare(cython.int, -1)
_FIELD = cython.declare(cython.int, 1)
_CUT = cython.declare(cython.int, 2)

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_LAST_SIGNED = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
_LAST_KEY = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cclass
class Cursor:
    """Reads one field after another between `at` and `end`."""

    data: cython.const[cython.uchar][::1]
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    # The field read last: where it begins, what it is, and its value or the place of its payload.
    mark: cython.Py_ssize_t
    number: cython.uint
    wire: cython.uint
    value: cython.ulonglong
    begin: cython.Py_ssize_t
    stop: cython.Py_ssize_t

    @cython.final
    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-9)
    def _varint(self) -> cython.int:
        """Read a varint into `value`; 0 where it is cut or longer than ten bytes."""
        at: cython.Py_ssize_t = self.at
        end: cython.Py_ssize_t = self.end
        shift: cython.int = 7
        byte: cython.ulonglong
        value: cython.ulonglong
        if at >= end:
            return 0
        value = self.data[at]
        at += 1
        if value < 128:
            self.value = value
            self.at = at
            return 1
        value &= 127
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

    @cython.final
    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(-9)
    def _next(self) -> cython.int:
        """Step to the next field."""
        self.mark = self.at
        if self.at >= self.end:
            return _END
        if self._varint() == 0 or self.value > _LAST_KEY or self.value < 8:
            return _LOST
        self.number = cython.cast(cython.uint, self.value >> 3)
        self.wire = cython.cast(cython.uint, self.value & 7)
        if self.wire == 0:
            return _FIELD if self._varint() else _LOST
        if self.wire == 2:
            if self._varint() == 0:
                return _LOST
            self.begin = self.at
            if self.value > cython.cast(cython.ulonglong, self.end - self.at):
                self.at = self.stop = self.end
                return _CUT
            self.at = self.stop = self.begin + cython.cast(cython.Py_ssize_t, self.value)
            return _FIELD
        return self._rare()

    @cython.final
    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _rare(self) -> cython.int:
        """Fixed-width values and groups."""
        width: cython.Py_ssize_t
        i: cython.Py_ssize_t
        byte: cython.ulonglong
        if self.wire == 3:
            return _FIELD if self._skip_group() else _LOST
        if self.wire != 1 and self.wire != 5:
            return _LOST
        width = 8 if self.wire == 1 else 4
        if self.end - self.at < width:
            return _LOST
        self.value = 0
        for i in range(width):
            byte = self.data[self.at + i]
            self.value |= byte << (8 * i)
        self.at += width
        return _FIELD

    @cython.final
    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _skip_group(self) -> cython.int:
        """Step over a group (a form that protobuf gave up), however deeply groups nest in it."""
        depth: cython.Py_ssize_t = 1
        wire: cython.uint
        while depth > 0:
            if self._varint() == 0:
                return 0
            wire = cython.cast(cython.uint, self.value & 7)
            if wire == 3:
                depth += 1
            elif wire == 4:
                depth -= 1
            elif wire == 0 or wire == 2:
                if self._varint() == 0:
                    return 0
                if wire == 2:
                    if self.value > cython.cast(cython.ulonglong, self.end - self.at):
                        return 0
                    self.at += cython.cast(cython.Py_ssize_t, self.value)
            elif wire == 1 or wire == 5:
                if self.end - self.at < (8 if wire == 1 else 4):
                    return 0
                self.at += 8 if wire == 1 else 4
            else:
                return 0
        return 1


@cython.final
@cython.cclass
class Splitter(Cursor):
    """Lists the fields of many messages; of the one that repeats by the million, only where its chunks lie."""

    bulk: cython.uint
    stride: cython.Py_ssize_t
    room: cython.Py_ssize_t
    chunk_room: cython.Py_ssize_t
    count: cython.Py_ssize_t
    chunks: cython.Py_ssize_t
    cut: cython.Py_ssize_t
    lost: cython.Py_ssize_t
    lost_bytes: cython.Py_ssize_t
    lost_at: cython.Py_ssize_t
    message: cython.uint[::1]
    field: cython.uint[::1]
    form: cython.uchar[::1]
    first: cython.longlong[::1]
    last: cython.longlong[::1]
    chunk_message: cython.uint[::1]
    chunk_first: cython.longlong[::1]
    chunk_last: cython.longlong[::1]
    chunk_count: cython.longlong[::1]

    def __init__(self, data: object, bulk: int, stride: int) -> None:
        self.data = data
        self.bulk = bulk
        self.stride = stride

    def reserve(self, fields: list[array[int]], chunks: list[array[int]]) -> None:
        """Take the arrays to fill. Where they are too short, rows are counted and not written."""
        self.message, self.field, self.form, self.first, self.last = fields
        self.chunk_message, self.chunk_first, self.chunk_last, self.chunk_count = chunks
        self.room, self.chunk_room = len(fields[0]), len(chunks[0])
        self.count = self.chunks = self.cut = self.lost = self.lost_bytes = 0
        self.lost_at = -1

    def run(
        self, begins: cython.const[cython.longlong][::1], stops: cython.const[cython.longlong][::1]
    ) -> tuple[int, int, int, int, int, int]:
        """Fields, chunks, cut fields, messages whose framing is lost, bytes lost with it, and where that began."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(begins)
        size: cython.Py_ssize_t = len(self.data)
        with cython.nogil:
            for i in range(n):
                if 0 <= begins[i] <= stops[i] <= size:
                    self._message(i, begins[i], stops[i])
        return self.count, self.chunks, self.cut, self.lost, self.lost_bytes, self.lost_at

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _message(
        self, message: cython.Py_ssize_t, begin: cython.Py_ssize_t, stop: cython.Py_ssize_t
    ) -> cython.int:
        got: cython.int
        held: cython.Py_ssize_t = 0
        chunk: cython.Py_ssize_t = begin
        self.at = begin
        self.end = stop
        while True:
            got = self._next()
            if got == _END or got == _LOST:
                break
            if self.number == self.bulk and self.wire == 2 and got == _FIELD:
                held += 1
                if self.at - chunk >= self.stride:
                    self._chunk(message, chunk, self.at, held)
                    chunk = self.at
                    held = 0
                continue
            self._field(message, got)
            if got == _CUT or self.wire == 3:  # no part of a chunk: its reader would stumble there
                if held:
                    self._chunk(message, chunk, self.mark, held)
                chunk = self.at
                held = 0
        if held:
            self._chunk(message, chunk, self.mark, held)
        if got == _LOST:
            self._lose()
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _field(self, message: cython.Py_ssize_t, got: cython.int) -> cython.int:
        row: cython.Py_ssize_t = self.count
        self.count += 1
        if got == _CUT:
            self.cut += 1
        if row >= self.room:
            return 0
        self.message[row] = cython.cast(cython.uint, message)
        self.field[row] = self.number
        self.form[row] = cython.cast(cython.uchar, self.wire + (8 if got == _CUT else 0))
        if self.wire == 2:
            self.first[row] = self.begin
            self.last[row] = self.stop
        else:
            self.first[row] = _signed(self.value)
            self.last[row] = 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _chunk(
        self,
        message: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        if self.chunks < self.chunk_room:
            self.chunk_message[self.chunks] = cython.cast(cython.uint, message)
            self.chunk_first[self.chunks] = first
            self.chunk_last[self.chunks] = last
            self.chunk_count[self.chunks] = count
        self.chunks += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _lose(self) -> cython.int:
        self.lost += 1
        self.lost_bytes += self.end - self.mark
        if self.lost_at < 0 or self.mark < self.lost_at:
            self.lost_at = self.mark
        return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(value: cython.ulonglong) -> cython.longlong:
    """The same 64 bits as a signed number; plain Python has no wrap-around to rely on."""
    if value > _LAST_SIGNED:
        return -cython.cast(cython.longlong, _ALL_BITS - value) - 1
    return cython.cast(cython.longlong, value)
