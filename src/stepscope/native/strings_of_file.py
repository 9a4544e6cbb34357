# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Each distinct string of a file once, however often it lies there."""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_PRIME = cython.declare(cython.ulonglong, 0x100000001B3)


def intern(
    data: cython.const[cython.uchar][::1],
    first: cython.const[cython.longlong][::1],
    last: cython.const[cython.longlong][::1],
    seed: int,
) -> tuple[array[int], list[tuple[int, int]]]:
    """A code for each span of the data, equal for equal bytes; and by code, where those bytes lie first."""
    need_equal(len(first), len(last))
    codes = array("I", bytes(4 * len(first)))
    table = _Table(data, first, last, seed)
    table.run(codes)
    return codes, table.spans()


@cython.final
@cython.cclass
class _Table:
    data: cython.const[cython.uchar][::1]
    first: cython.const[cython.longlong][::1]
    last: cython.const[cython.longlong][::1]
    seed: cython.ulonglong
    mask: cython.ulonglong
    count: cython.Py_ssize_t
    # By slot: one more than the code of the string there. By code: the span that showed it first, and its hash.
    slot: cython.uint[::1]
    shown: cython.uint[::1]
    hash: cython.ulonglong[::1]

    def __init__(self, data: object, first: object, last: object, seed: int) -> None:
        self.data, self.first, self.last = data, first, last
        size = 1 << (2 * len(self.first) + 1).bit_length()
        self.seed = seed
        self.mask = size - 1
        self.count = 0
        self.slot = array("I", bytes(4 * size))
        self.shown = array("I", bytes(4 * len(self.first)))
        self.hash = array("Q", bytes(8 * len(self.first)))

    def spans(self) -> list[tuple[int, int]]:
        return [(self.first[self.shown[i]], self.last[self.shown[i]]) for i in range(self.count)]

    def run(self, codes: cython.uint[::1]) -> None:
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.first)
        with cython.nogil:
            for i in range(n):
                codes[i] = self._code(i)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(0xFFFFFFFF)
    def _code(self, span: cython.Py_ssize_t) -> cython.uint:
        bits: cython.ulonglong = self._hash(self.first[span], self.last[span])
        at: cython.ulonglong = (bits ^ (bits >> 32)) & self.mask
        code: cython.uint
        while self.slot[at]:
            code = self.slot[at] - 1
            if self.hash[code] == bits and self._same(self.shown[code], span):
                return code
            at = (at + 1) & self.mask
        code = cython.cast(cython.uint, self.count)
        self.count += 1
        self.slot[at] = code + 1
        self.hash[code] = bits
        self.shown[code] = cython.cast(cython.uint, span)
        return code

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _hash(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.ulonglong:
        bits: cython.ulonglong = self.seed
        i: cython.Py_ssize_t
        for i in range(first, last):
            bits = ((bits ^ self.data[i]) * _PRIME) & _ALL_BITS
        return bits

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _same(self, one: cython.Py_ssize_t, other: cython.Py_ssize_t) -> cython.int:
        a: cython.Py_ssize_t = self.first[one]
        b: cython.Py_ssize_t = self.first[other]
        size: cython.Py_ssize_t = self.last[other] - b
        i: cython.Py_ssize_t
        if self.last[one] - a != size:
            return 0
        for i in range(size):
            if self.data[a + i] != self.data[b + i]:
                return 0
        return 1
