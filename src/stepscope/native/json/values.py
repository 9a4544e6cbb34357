# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""Walks over JSON values in a buffer, to see where they end.

The bytes are untrusted: nothing is read past the end, nothing recurses, and what is not quite JSON is taken as it was
meant where that is clear. Walking goes from place to place; instead of the next place it may return NEED or BAD.

Bytes by number: 10 line end  34 `"`  44 `,`  58 `:`  91 `[`  92 `\\`  93 `]`  123 `{`  125 `}`
"""

from __future__ import annotations

from stepscope.native.buffers import words_of

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

NEED = -2  # the buffer ends before the value does
BAD = -3  # this is not JSON; `bad_at` is the place
CLOSED = -4  # the object ends here

_NEED = cython.declare(cython.Py_ssize_t, NEED)
_BAD = cython.declare(cython.Py_ssize_t, BAD)
_CLOSED = cython.declare(cython.Py_ssize_t, CLOSED)
_NULL = cython.declare(cython.ulonglong, int.from_bytes(b"null", "little"))
_DEEPEST = cython.declare(cython.Py_ssize_t, 64)  # bits in a word
# Eight bytes at once: all bits, one in each, the highest bit of each, and each of the bytes that matter in a string.
_ALL_BITS = cython.declare(cython.ulonglong, (1 << 64) - 1)
_ONE = cython.declare(cython.ulonglong, 1)
_ONES = cython.declare(cython.ulonglong, 0x0101010101010101)
_HIGHEST = cython.declare(cython.ulonglong, 0x8080808080808080)
_QUOTES = cython.declare(cython.ulonglong, 0x0101010101010101 * 34)
_BACKSLASHES = cython.declare(cython.ulonglong, 0x0101010101010101 * 92)


@cython.final
@cython.cclass
class Values:
    """A buffer, and what was read last of it."""

    def __init__(self) -> None:
        self.look_at(memoryview(b"\0"))
        self.lo = self.hi = self.bad_at = self.repaired = 0
        self.escaped = self.is_null = False

    def look_at(self, buf: memoryview) -> None:
        """Walk over this buffer from now on."""
        self.buf = buf
        self.words = words_of(buf)
        self.end = len(self.buf)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def bad(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """BAD, because of what stands at `p`."""
        self.bad_at = p
        return _BAD

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def space(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next place that is not blank."""
        while p < self.end and self.buf[p] <= 32:
            p += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def space_and_commas(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next place that is neither blank nor a comma."""
        while p < self.end and (self.buf[p] <= 32 or self.buf[p] == 44):
            p += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def member(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next member of an object from `p` on, its key as [lo, hi). Returns the place of its value.

        CLOSED where the object ends; `hi` is the place after its brace.
        """
        p = self.space_and_commas(p)
        if p >= self.end:
            return _NEED
        if self.buf[p] == 34:
            return self.key(p + 1)
        if self.buf[p] != 125:
            return self.bad(p)
        self.hi = p + 1
        return _CLOSED

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def key(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The key of a member whose content begins at `p`, as [lo, hi). Returns the place of the member's value."""
        self.lo = p
        p = self._mark(p)
        while p < self.end and self.buf[p] == 92:
            p = self._mark(p + 2)
        self.hi = p
        p = self.space(p + 1)
        if p < self.end and self.buf[p] != 58:
            return self.bad(p)
        p = self.space(p + 1)
        return p if p < self.end else _NEED

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # the span is checked first
    @cython.exceptval(check=False)
    def packed(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t) -> cython.ulonglong:
        """Up to eight bytes as one number, the first lowest; 0 for more."""
        w: cython.ulonglong = 0
        i: cython.Py_ssize_t = lo >> 3
        shift: cython.int = (lo & 7) * 8
        if lo < 0 or hi > self.end or hi - lo > 8 or hi <= lo:
            return 0
        if i + 1 < len(self.words):  # in two steps, as a shift by 64 is none at all
            w = self.words[i] >> shift | ((self.words[i + 1] << 1) << (63 - shift)) & _ALL_BITS
            return w & _ALL_BITS >> (64 - 8 * (hi - lo))
        while hi > lo:
            hi -= 1
            w = w << 8 | self.buf[hi]
        return w

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def string(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The string whose content begins at `p`, as [lo, hi). Returns the place after its quote."""
        self.lo = p
        p = self._close(p, False)
        self.hi = p - 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _close(self, p: cython.Py_ssize_t, nested: cython.bint) -> cython.Py_ssize_t:
        """The place after the quote that closes a string. Inside of other values, the string may be a key."""
        p = self._mark(p)
        self.escaped = p < self.end and self.buf[p] == 92
        while p < self.end and self.buf[p] == 92:
            p = self._mark(p + 2)
        return p + 1 if self._closes(p, nested) else self._mend(p, nested)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _closes(self, p: cython.Py_ssize_t, nested: cython.bint) -> cython.bint:
        """Whether what follows the quote at `p` shows that it closed a string."""
        c: cython.int
        p = self.space(p + 1)
        if p >= self.end:
            return False
        c = self.buf[p]
        return c == 44 or c == 93 or c == 125 or (nested and c == 58)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _mend(self, p: cython.Py_ssize_t, nested: cython.bint) -> cython.Py_ssize_t:
        """As _close, but from a quote at `p` that closes nothing.

        It and others like it are part of the text: writers forgot to escape them. Texts like this end with the line,
        and before what looks like the next object of a list.
        """
        c: cython.int
        last: cython.int = 0  # the last two bytes that are not blank
        last_but_one: cython.int = 0
        while p < self.end and self.buf[p] != 10:
            c = self.buf[p]
            if c == 92:
                self.escaped = True
                p += 1
            elif c == 34 and self._closes(p, nested):
                self.repaired += 1
                return p + 1
            elif c == 34 and last == 123 and last_but_one == 44:
                return self.bad(p)
            if c > 32:
                last_but_one = last
                last = c
            p += 1
        return self.bad(p) if self.space(p) < self.end else _NEED

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(
        False
    )  # every index is below `end`, the length of the buffer, or below the number of words
    @cython.exceptval(check=False)
    def _mark(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next quote or backslash from `p` on; or the end."""
        i: cython.Py_ssize_t = p >> 3
        w: cython.ulonglong
        x: cython.ulonglong
        if i < len(self.words):
            w = self.words[i] | ((_ONE << ((p & 7) * 8)) - 1)  # what is before `p` matches nothing
            while True:
                # A byte less one borrows its highest bit if it was zero; bytes above one that did may do so too.
                x = w ^ _QUOTES
                w ^= _BACKSLASHES
                x = ((x - _ONES) & ~x | (w - _ONES) & ~w) & _HIGHEST
                if x != 0:
                    return (
                        i * 8
                        + cython.cast(cython.Py_ssize_t, (((x - 1) & _ONES) * _ONES & _ALL_BITS) >> 56)
                        - 1
                    )
                i += 1
                if i >= len(self.words):
                    break
                w = self.words[i]
            p = i * 8
        while p < self.end and self.buf[p] != 34 and self.buf[p] != 92:
            p += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def text(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A string's content, or the JSON text of another value, as [lo, hi). Returns the place after it."""
        if p < self.end and self.buf[p] == 34:
            self.is_null = False
            return self.string(p + 1)
        self.lo = p
        self.hi = p = self.skip(p)
        self.escaped = False
        self.is_null = self.packed(self.lo, p) == _NULL
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def skip(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place after the value at `p`, whatever it is: bare words such as N/A count as values."""
        if p >= self.end:
            return _NEED
        if self.buf[p] == 34:
            return self._close(p + 1, False)
        if self.buf[p] == 91 or self.buf[p] == 123:
            return self._skip_nested(p)
        return self._skip_word(p)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _skip_nested(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place after the array or object at `p`, whose brackets and braces match."""
        depth: cython.Py_ssize_t = 0
        braces: cython.ulonglong = 0  # a bit for each level, the innermost lowest: is it an object?
        c: cython.int
        while p < self.end:
            c = self.buf[p]
            if c < 91:
                if c == 34:
                    p = self._close(p + 1, True)
                    if p < 0:
                        return p
                    continue
            elif c == 91 or c == 123:
                depth += 1
                if depth > _DEEPEST:
                    return self.bad(p)
                braces = (braces << 1 | (c >> 5 & 1)) & _ALL_BITS
            elif c == 93 or c == 125:
                if (braces & 1) != (c >> 5 & 1):
                    return self.bad(p)
                braces >>= 1
                depth -= 1
                if depth == 0:
                    return p + 1
            p += 1
        return _NEED

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _skip_word(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        c: cython.int
        while p < self.end:
            c = self.buf[p]
            if c <= 34 or c == 44 or c == 91 or c == 93 or c == 123 or c == 125:
                return p
            p += 1
        return _NEED
