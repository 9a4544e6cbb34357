# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""Each distinct string of a buffer once: bytes to a small number."""

from __future__ import annotations

from stepscope.native.buffers import larger, room, words_of

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp

COMPILED = bool(cython.compiled)

ESCAPED = 1  # flag of a string: it has backslashes to be resolved

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_LOW_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_ODD = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_MORE_ODD = cython.declare(cython.ulonglong, 0xD6E8FEB86659FD93)
# A quarter of the table is used at most, so that chance never fills this many slots in a row. A file that does so on
# purpose gets some strings twice, instead of a search that grows with the square of its size.
_FARTHEST = cython.declare(cython.Py_ssize_t, 64)


@cython.final
@cython.cclass
class Strings:
    """Numbers strings in the order they are met, by open addressing under a hash that files cannot foresee."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.count = self.used = 0
        self.capacity = 1024
        self.look_at(memoryview(b"\0"))
        self._take_blob(room("B", 1 << 16))
        self.starts = room("q", self.capacity)
        self.ends = room("q", self.capacity)
        self.hashes = room("I", self.capacity)
        self.flags = room("B", self.capacity)
        self.slots = room("I", self.capacity * 4)
        self.mask = self.capacity * 4 - 1

    def look_at(self, buf: memoryview) -> None:
        """Strings are spans of this buffer from now on."""
        self.buf = buf
        self.words = words_of(buf)

    def code_of(self, text: bytes) -> int:
        """The number of a string that is looked at alone; it is taken in if it is new."""
        self.look_at(memoryview(text or b"\0"))
        return self.intern(0, len(text), False, -1)

    def text(self, code: int) -> bytes:
        """The bytes of one string, as they stand in the file."""
        return bytes(memoryview(self.blob)[self.starts[code] : self.ends[code]])

    def texts(self) -> list[tuple[bytes, int]]:
        """All strings by code, each with its flags."""
        blob = memoryview(self.blob)
        lows = memoryview(self.starts)[: self.count]
        highs = memoryview(self.ends)[: self.count]
        flags = memoryview(self.flags)[: self.count]
        return [(bytes(blob[lo:hi]), flag) for lo, hi, flag in zip(lows, highs, flags, strict=True)]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def intern(
        self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, escaped: cython.bint, guess: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The number of the string [lo, hi), which is taken in if it is new. A guess that is right saves time."""
        hashed: cython.uint
        code: cython.Py_ssize_t
        if lo < 0 or hi < lo or hi > len(self.buf):
            return 0
        if self._is(guess, lo, hi - lo):
            return guess
        hashed = self._hash(lo, hi)
        code = self._seek(lo, hi, hashed)
        return code if code >= 0 else self._add(lo, hi, hashed, escaped)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def find(
        self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, guess: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The number of the string [lo, hi), or -1. A guess that is right saves time."""
        if lo < 0 or hi < lo or hi > len(self.buf):
            return -1
        if self._is(guess, lo, hi - lo):
            return guess
        return self._seek(lo, hi, self._hash(lo, hi))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def end_at(self, code: cython.Py_ssize_t, lo: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place after the string of this code, if it is at `lo`; or -1."""
        size: cython.Py_ssize_t
        if code < 0 or code >= self.count or lo < 0:
            return -1
        size = cython.cast(cython.Py_ssize_t, self.ends[code] - self.starts[code])
        return lo + size if self._is(code, lo, size) else -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _seek(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, hashed: cython.uint) -> cython.Py_ssize_t:
        at: cython.Py_ssize_t = hashed & self.mask
        code: cython.Py_ssize_t
        _step: cython.Py_ssize_t
        for _step in range(_FARTHEST):
            code = cython.cast(cython.Py_ssize_t, self.slots[at]) - 1
            if code < 0:
                return -1
            if self.hashes[code] == hashed and self._is(code, lo, hi - lo):
                return code
            at = (at + 1) & self.mask
        return -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add(
        self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, hashed: cython.uint, escaped: cython.bint
    ) -> cython.Py_ssize_t:
        code: cython.Py_ssize_t = self.count
        if code >= self.capacity:
            with cython.gil:
                self._grow()
        if self.used + hi - lo > len(self.blob):
            with cython.gil:
                self._grow_blob(self.used + hi - lo)
        self.starts[code] = self.used
        self._keep(lo, hi)
        self.ends[code] = self.starts[code] + hi - lo
        self.hashes[code] = hashed
        self.flags[code] = 1 if escaped else 0  # ESCAPED
        self.count = code + 1
        self._place(code)
        return code

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _place(self, code: cython.Py_ssize_t) -> cython.int:
        """Enter the string in the table, if there is a slot for it near its own."""
        at: cython.Py_ssize_t = self.hashes[code] & self.mask
        _step: cython.Py_ssize_t
        for _step in range(_FARTHEST):
            if self.slots[at] == 0:
                self.slots[at] = cython.cast(cython.uint, code + 1)
                return 0
            at = (at + 1) & self.mask
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _keep(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t) -> cython.int:
        """Copy the bytes to the blob, where each string begins at a whole word."""
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t = self.used - lo
        for i in range(lo, hi):
            self.blob[at + i] = self.buf[i]
        self.used += (hi - lo + 7) & -8
        return 0

    def _grow(self) -> None:
        """Twice the room for strings, and the table laid out anew."""
        self.capacity *= 2
        self.starts = larger(memoryview(self.starts), "q", self.capacity)
        self.ends = larger(memoryview(self.ends), "q", self.capacity)
        self.hashes = larger(memoryview(self.hashes), "I", self.capacity)
        self.flags = larger(memoryview(self.flags), "B", self.capacity)
        self.slots = room("I", self.capacity * 4)
        self.mask = self.capacity * 4 - 1
        for code in range(self.count):
            self._place(code)

    def _grow_blob(self, size: int) -> None:
        self._take_blob(larger(memoryview(self.blob), "B", max(size, 2 * len(self.blob))))

    def _take_blob(self, blob: memoryview) -> None:
        self.blob = blob

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # both spans are checked first
    @cython.exceptval(-9)
    def _is(self, code: cython.Py_ssize_t, lo: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
        """Whether the string of this code is the one at `lo`."""
        first: cython.Py_ssize_t
        if code < 0 or code >= self.count or lo < 0 or lo + size > len(self.buf):
            return False
        first = cython.cast(cython.Py_ssize_t, self.starts[code])
        if self.ends[code] - first != size or first + size > len(self.blob):
            return False
        if cython.compiled:
            return (
                size == 0 or memcmp(cython.address(self.blob[first]), cython.address(self.buf[lo]), size) == 0
            )
        return self.blob[first : first + size] == self.buf[lo : lo + size]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _hash(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t) -> cython.uint:
        """Of a span inside the buffer: by whole words, the last of which may overlap the one before."""
        h: cython.ulonglong = self.seed ^ cython.cast(cython.ulonglong, hi - lo)
        w: cython.ulonglong
        p: cython.Py_ssize_t = lo
        while p < hi:
            if p + 8 <= hi:
                w = self._word(p)
            elif hi - lo >= 8:
                w = self._word(hi - 8)
            else:
                w = self._short(lo, hi)
            h = ((h ^ w) * _ODD) & _ALL_BITS
            h ^= h >> 32
            p += 8
        h = (h * _MORE_ODD) & _ALL_BITS
        return cython.cast(cython.uint, (h ^ (h >> 32)) & _LOW_BITS)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.boundscheck(False)  # a word is read where there is another after it; p + 8 is inside the buffer
    @cython.exceptval(check=False)
    def _word(self, p: cython.Py_ssize_t) -> cython.ulonglong:
        """Eight bytes from `p` on as one number, the first lowest."""
        i: cython.Py_ssize_t = p >> 3
        shift: cython.int = (p & 7) * 8
        if i + 1 < len(self.words):
            # In two steps, as a shift by 64 is none at all.
            return self.words[i] >> shift | ((self.words[i + 1] << 1) << (63 - shift)) & _ALL_BITS
        return self._short(p, p + 8)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # the span is inside the buffer
    @cython.exceptval(check=False)
    def _short(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t) -> cython.ulonglong:
        """Up to eight bytes as one number, one by one."""
        w: cython.ulonglong = 0
        while hi > lo:
            hi -= 1
            w = w << 8 | self.buf[hi]
        return w
