# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""What is between two values of an object: blanks, commas, a key with its colon, or the brace that closes it.

Writers repeat themselves byte by byte. What was walked through once means the same wherever an object goes on with the same bytes.
"""

from __future__ import annotations

from stepscope.native.buffers import room

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, gaps.pxd imports it
    from stepscope.native.strings import Strings

COMPILED = bool(cython.compiled)

CLOSING = -1  # the meaning of a gap that ends with the object's brace

_MOST = cython.declare(cython.Py_ssize_t, 1 << 10)  # a file may have more, which are walked through each time
_LONGEST = cython.declare(cython.Py_ssize_t, 1 << 7)


@cython.final
@cython.cclass
class Gaps:
    """Gaps by number, each with its meaning: CLOSING, or the key that it contains."""

    def __init__(self, seed: int) -> None:
        self.texts = Strings(seed)
        self.meaning = room("i", _MOST)

    def look_at(self, buf: memoryview) -> None:
        """Gaps are spans of this buffer from now on."""
        self.texts.look_at(buf)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def take(self, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, meaning: cython.int) -> cython.Py_ssize_t:
        """The number of the gap [lo, hi) and one more; 0 for one that is not remembered."""
        code: cython.Py_ssize_t
        if hi - lo > _LONGEST:
            return 0
        code = self.texts.find(lo, hi, -1)
        if code < 0 and self.texts.count < _MOST:
            code = self.texts.intern(lo, hi, False, -1)
            self.meaning[code] = meaning
        return code + 1
