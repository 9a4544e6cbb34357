# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""Decimal text to integers: µs become ns without passing through a float.

Bytes by number: 34 `"`  43 `+`  44 `,`  45 `-`  46 `.`  48 `0`  57 `9`  93 `]`  125 `}`
"""

from __future__ import annotations

import sys
from array import array

from stepscope.native.json.values import NEED

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, json_numbers.pxd imports it
    from stepscope.native.json.values import Values

if cython.compiled:
    from cython.cimports.libc.string import memcpy

COMPILED = bool(cython.compiled)

MISSING = -(1 << 63)  # the value of what is not a number, or out of range

_NEED = cython.declare(cython.Py_ssize_t, NEED)
_MISSING = cython.declare(cython.longlong, MISSING)
# What another digit may follow: any mantissa below this, and this one if the digit is at most 5.
_TENTH = cython.declare(cython.ulonglong, (1 << 64) // 10)
_LAST_SIGNED = cython.declare(cython.ulonglong, (1 << 63) - 1)
_ALL_BITS = cython.declare(cython.ulonglong, (1 << 64) - 1)
_FARTHEST = cython.declare(cython.ulonglong, 4 * 10**18)
_PLAIN = cython.declare(
    cython.Py_ssize_t, 18
)  # digits and a point that a signed number holds, whatever they are
# Eight digits at once, the first lowest: what makes a digit of a byte; one, and the highest bit, of each; what is above 9.
_DIGITS_AT_ONCE = cython.declare(cython.Py_ssize_t, 8 if sys.byteorder == "little" else 1 << 62)
_ZEROS = cython.declare(cython.ulonglong, 0x3030303030303030)
_ONES = cython.declare(cython.ulonglong, 0x0101010101010101)
_HIGHEST = cython.declare(cython.ulonglong, 0x8080808080808080)
_ABOVE_NINE = cython.declare(cython.ulonglong, 0x7676767676767676)
# Digits, pairs and fours of them: which bits they have, and what joins two of them.
_SINGLE = cython.declare(cython.ulonglong, 0x0F0F0F0F0F0F0F0F)
_PAIRS = cython.declare(cython.ulonglong, 0x00FF00FF00FF00FF)
_FOURS = cython.declare(cython.ulonglong, 0x0000FFFF0000FFFF)
_TENS = cython.declare(cython.ulonglong, 10 * 2**8 + 1)
_HUNDREDS = cython.declare(cython.ulonglong, 100 * 2**16 + 1)
_MYRIADS = cython.declare(cython.ulonglong, 10_000 * 2**32 + 1)
_TRUE = cython.declare(cython.ulonglong, int.from_bytes(b"true", "little"))
_FALSE = cython.declare(cython.ulonglong, int.from_bytes(b"false", "little"))
_MOST_POWER = cython.declare(cython.Py_ssize_t, 1 << 32)


@cython.final
@cython.cclass
class Numbers:
    """The last number that was read of a buffer."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.look_at(memoryview(b"\0"))
        self.powers = array("Q", [int("1" + "0" * k) for k in range(20)])
        self.mantissa = self.exponent = self.value = self.fraction = self.unread = 0
        self.negative = self.has_digits = self.has_lost = False

    def look_at(self, buf: memoryview) -> None:
        """Read from this buffer from now on; the values look at it too."""
        self.buf = buf
        self.end = len(self.buf)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def integer(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A whole number, a bool, or a string that holds a number, in `value`; MISSING if it is something else."""
        begin: cython.Py_ssize_t = p
        word: cython.ulonglong
        p = self._plain(begin, 0)
        if p >= 0:
            return p
        p = self._number(begin)
        if p < 0:
            return p
        if self.value == _MISSING:
            word = self.values.packed(begin, p)
            self.value = 1 if word == _TRUE else 0 if word == _FALSE else _MISSING
            return p
        if self.exponent == 0:
            self._signed()
            return p
        self._scale(0)
        if self.fraction != 0:
            self.value = _MISSING
        return p

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def scaled(self, p: cython.Py_ssize_t, power: cython.int) -> cython.Py_ssize_t:
        """A decimal number times 10^power: `value` rounded down, `fraction` in millionths.

        MISSING if there is none; a fraction of -1 says that there is one, but out of range.
        """
        begin: cython.Py_ssize_t = p
        p = self._plain(begin, power)
        if p >= 0:
            return p
        p = self._number(begin)
        if p < 0:
            return p
        if self.value == _MISSING:
            self.unread += 1
            return p
        self._scale(power)
        if self.value == _MISSING:
            self.fraction = -1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(
        False
    )  # every index is below `end`, the length of the buffer, or below the number of powers
    @cython.exceptval(check=False)
    def _plain(self, p: cython.Py_ssize_t, power: cython.int) -> cython.Py_ssize_t:
        """As `scaled`, for what nearly all numbers are: digits alone, and after a point no more of them than `power`.

        Returns -1 for any other, which has to be read in the general way.
        """
        m: cython.ulonglong = 0
        begin: cython.Py_ssize_t = p
        point: cython.Py_ssize_t = -1
        d: cython.int
        w: cython.ulonglong
        x: cython.ulonglong
        n: cython.Py_ssize_t = _DIGITS_AT_ONCE
        while p + _DIGITS_AT_ONCE <= self.end:
            w = self._word(p) ^ _ZEROS
            x = (((w & ~_HIGHEST) + _ABOVE_NINE) | w) & _HIGHEST
            if x != 0:  # where the first byte that is no digit is
                n = cython.cast(cython.Py_ssize_t, (((x - 1) & _ONES) * _ONES & _ALL_BITS) >> 56) - 1
            if n > 0:
                m = m * self.powers[n] + self._eight((w << (64 - 8 * n)) & _ALL_BITS)
                p += n
            if p - begin > _PLAIN:
                return -1
            if x != 0:
                if point >= 0 or p == begin or self.buf[p] != 46:
                    break
                point = p
                p += 1
                n = _DIGITS_AT_ONCE
        while p < self.end:
            d = cython.cast(cython.int, self.buf[p]) - 48
            if d >= 0 and d <= 9:
                m = m * 10 + d
            elif d == -2 and point < 0 and p > begin:
                point = p
            else:
                break
            p += 1
            if p - begin > _PLAIN:
                return -1
        if p == begin or p == point + 1 or p >= self.end or not self._ends_value(p):
            return -1
        if point >= 0:
            power -= cython.cast(cython.int, p - point - 1)
        if power < 0:
            return -1
        if power > 0:
            if power >= len(self.powers) or m > _FARTHEST // self.powers[power]:
                return -1
            m *= self.powers[power]
        self.value = cython.cast(cython.longlong, m)
        self.fraction = 0
        return p

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.boundscheck(False)  # p + 8 is inside the buffer
    @cython.exceptval(check=False)
    def _word(self, p: cython.Py_ssize_t) -> cython.ulonglong:
        """Eight bytes from `p` on as one number, the first lowest."""
        w: cython.ulonglong = 0
        if cython.compiled:
            memcpy(cython.address(w), cython.address(self.buf[p]), 8)
        else:
            w = int.from_bytes(self.buf[p : p + 8], "little")
        return w

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _eight(self, w: cython.ulonglong) -> cython.ulonglong:
        """The number of eight digits, each in a byte, the first lowest."""
        w = ((w & _SINGLE) * _TENS & _ALL_BITS) >> 8
        w = ((w & _PAIRS) * _HUNDREDS & _ALL_BITS) >> 16
        return ((w & _FOURS) * _MYRIADS & _ALL_BITS) >> 32

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _signed(self) -> cython.int:
        """The mantissa as a signed 64-bit number; unsigned ones above 2^63 wrap, as addresses must."""
        if self.mantissa <= _LAST_SIGNED:
            self.value = cython.cast(cython.longlong, self.mantissa)
            if self.negative:
                self.value = -self.value
        elif self.negative:
            self.value = _MISSING
        else:
            self.value = -1 - cython.cast(cython.longlong, _ALL_BITS - self.mantissa)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _scale(self, power: cython.int) -> cython.int:
        """The number times 10^power, rounded down to millionths, in `value` and `fraction`."""
        e: cython.Py_ssize_t = self.exponent + power
        whole: cython.ulonglong = self.mantissa
        rest: cython.ulonglong = 0
        lost: cython.bint = self.has_lost
        if e < -19:
            whole = 0
            lost = lost or self.mantissa > 0
        elif e < 0:
            whole = self.mantissa // self.powers[-e]
            rest = self.mantissa - whole * self.powers[-e]
            if e >= -6:
                rest *= self.powers[6 + e]
            else:
                lost = lost or rest % self.powers[-e - 6] > 0
                rest //= self.powers[-e - 6]
        while e > 0 and whole > 0 and whole < _TENTH:
            whole *= 10
            e -= 1
        if (e > 0 and whole > 0) or whole > _FARTHEST:
            self.value = _MISSING
            return 0
        self.value = cython.cast(cython.longlong, whole)
        self.fraction = cython.cast(cython.longlong, rest)
        if self.negative:
            self.value = -self.value
            if rest > 0 or lost:  # down is away from zero
                self.value -= 1
                self.fraction = 1000000 - self.fraction - (1 if lost else 0)
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _number(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A number, bare or quoted, as mantissa and exponent. What is not one is passed, with MISSING as `value`."""
        begin: cython.Py_ssize_t = p
        quoted: cython.bint
        if p >= self.end:
            return _NEED
        quoted = self.buf[p] == 34
        if quoted:
            p += 1
        self.value = self.fraction = 0
        self.mantissa = 0
        self.exponent = 0
        self.has_digits = self.has_lost = False
        self.negative = p < self.end and self.buf[p] == 45
        if p < self.end and (self.buf[p] == 45 or self.buf[p] == 43):
            p += 1
        p = self._digits(p, 0)
        if p < self.end and self.buf[p] == 46:
            p = self._digits(p + 1, 1)
        if p < self.end and self.has_digits and (self.buf[p] == 101 or self.buf[p] == 69):
            p = self._power(p + 1)
        if p < self.end and quoted and self.buf[p] == 34:
            quoted = False
            p += 1
        if p >= self.end:
            return _NEED
        if self.has_digits and not quoted and self._ends_value(p):
            return p
        self.value = _MISSING
        return self.values.skip(begin)

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _digits(self, p: cython.Py_ssize_t, step: cython.int) -> cython.Py_ssize_t:
        """Digits into the mantissa, each lowering the exponent by `step`."""
        m: cython.ulonglong = self.mantissa
        begin: cython.Py_ssize_t = p
        d: cython.int
        while p < self.end:
            d = cython.cast(cython.int, self.buf[p]) - 48
            if d < 0 or d > 9 or m >= _TENTH:
                break
            m = m * 10 + d
            p += 1
        self.mantissa = m
        self.exponent -= step * (p - begin)
        self.has_digits = self.has_digits or p > begin
        if m >= _TENTH:
            return self._digits_too_many(p, step)
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _digits_too_many(self, p: cython.Py_ssize_t, step: cython.int) -> cython.Py_ssize_t:
        """Go on with a mantissa that holds one more digit at most; the others raise the exponent instead."""
        d: cython.int = cython.cast(cython.int, self.buf[p]) - 48 if p < self.end else -1
        if self.mantissa == _TENTH and d >= 0 and d <= 5 and self.exponent <= 0:
            self.mantissa = self.mantissa * 10 + d
            self.exponent -= step
            p += 1
        while p < self.end and self.buf[p] >= 48 and self.buf[p] <= 57:
            self.has_lost = self.has_lost or self.buf[p] > 48
            self.exponent += 1 - step
            p += 1
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _power(self, p: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The power of ten that follows an `e`, added to the exponent."""
        power: cython.Py_ssize_t = 0
        down: cython.bint = p < self.end and self.buf[p] == 45
        if p < self.end and (self.buf[p] == 45 or self.buf[p] == 43):
            p += 1
        while p < self.end and self.buf[p] >= 48 and self.buf[p] <= 57:
            if power < _MOST_POWER:
                power = power * 10 + self.buf[p] - 48
            p += 1
        self.exponent += -power if down else power
        return p

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)  # every index is below `end`, the length of the buffer
    @cython.exceptval(check=False)
    def _ends_value(self, p: cython.Py_ssize_t) -> cython.bint:
        return (
            p >= self.end or self.buf[p] <= 32 or self.buf[p] == 44 or self.buf[p] == 93 or self.buf[p] == 125
        )
