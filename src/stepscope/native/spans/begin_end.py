# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Begins and ends, by the million: which end closes which begin, where a trace gives them as separate events.

Columns come and go as buffers of uint8 or uint32.
"""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NOBODY = 0xFFFFFFFF
NO_NAME = 0xFFFFFFFF

_BEGIN = cython.declare(cython.uchar, 1)
_END = cython.declare(cython.uchar, 2)
_NONE = cython.declare(cython.uint, 0xFFFFFFFF)


@cython.final
@cython.cclass
class _Pairing:
    """The open begins as a stack (`top`, then `below`), and the latest of each name (`latest`, then `namesake`)."""

    name: cython.const[cython.uint][::1]
    partner: cython.uint[::1]
    below: cython.uint[::1]
    namesake: cython.uint[::1]
    latest: cython.uint[::1]
    top: cython.uint
    nameless: cython.uint

    def __init__(self, name: cython.const[cython.uint][::1], partner: cython.uint[::1]) -> None:
        self.name = name
        self.partner = partner
        self.below = array("I", [NOBODY]) * len(name)
        self.namesake = array("I", [NOBODY]) * len(name)
        self.top = NOBODY
        self.nameless = self._names()
        self.latest = array("I", [NOBODY]) * (self.nameless + 1)

    def _names(self) -> int:
        """One more than the greatest name: the place of begins without one."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.name)
        past: cython.uint = 0
        with cython.nogil:
            for i in range(n):
                if self.name[i] != _NONE and self.name[i] >= past:
                    past = self.name[i] + 1
        return past

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _slot(self, row: cython.uint) -> cython.longlong:
        return self.nameless if self.name[row] == _NONE else self.name[row]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _open(self, row: cython.uint) -> cython.int:
        slot: cython.longlong = self._slot(row)
        self.below[row] = self.top
        self.top = row
        self.namesake[row] = self.latest[slot]
        self.latest[slot] = row
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _drop(self) -> cython.int:
        self.latest[self._slot(self.top)] = self.namesake[self.top]
        self.top = self.below[self.top]
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _begin_of(self, row: cython.uint) -> cython.longlong:
        """The nearest open begin that this end may close."""
        named: cython.uint
        unnamed: cython.uint = self.latest[self.nameless]
        if self.name[row] == _NONE:
            return self.top
        named = self.latest[self.name[row]]
        if named == _NONE or (unnamed != _NONE and unnamed > named):
            return unnamed
        return named

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _close(self, row: cython.uint) -> cython.int:
        begin: cython.longlong = self._begin_of(row)
        if begin == _NONE:
            return 0
        while self.top != begin:
            self._drop()
        self._drop()
        self.partner[begin] = row
        self.partner[row] = cython.cast(cython.uint, begin)
        return 0

    def run(self, track: cython.const[cython.uint][::1], phase: cython.const[cython.uchar][::1]) -> None:
        """Find each row's partner."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(phase)
        with cython.nogil:
            for i in range(n):
                if i > 0 and track[i] != track[i - 1]:
                    while self.top != _NONE:
                        self._drop()
                if phase[i] == _BEGIN:
                    self._open(cython.cast(cython.uint, i))
                elif phase[i] == _END:
                    self._close(cython.cast(cython.uint, i))


def pair(
    track: cython.const[cython.uint][::1],
    phase: cython.const[cython.uchar][::1],
    name: cython.const[cython.uint][::1],
) -> tuple[array[int], array[int], array[int], array[int]]:
    """Match begins (phase 1) and ends (phase 2), sorted by track and time; other phases are passed over.

    An end closes the nearest open begin of its track and name, where NO_NAME fits any; the begins above that one
    stay unmatched. Returns (begin rows, end rows, unmatched begins, unmatched ends), in the order of the ends and
    of the rows. Names are small numbers, as interning gives them: the greatest sets the memory needed.
    """
    need_equal(len(track), len(phase), len(name))
    partner = array("I", [NOBODY]) * len(phase)
    _Pairing(name, partner).run(track, phase)
    ends = _rows(phase, partner, _END, True)
    return (
        _gather(partner, ends),
        ends,
        _rows(phase, partner, _BEGIN, False),
        _rows(phase, partner, _END, False),
    )


def _rows(
    phase: cython.const[cython.uchar][::1],
    partner: cython.const[cython.uint][::1],
    wanted: cython.uchar,
    matched: cython.bint,
) -> array[int]:
    """The rows of that phase with, or without, a partner."""
    found = array("I", [0]) * len(phase)
    del found[_select(phase, partner, wanted, matched, found) :]
    return found


@cython.cfunc
def _select(
    phase: cython.const[cython.uchar][::1],
    partner: cython.const[cython.uint][::1],
    wanted: cython.uchar,
    matched: cython.bint,
    out: cython.uint[::1],
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(phase)
    count: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            if phase[i] == wanted and (partner[i] != _NONE) == matched:
                out[count] = cython.cast(cython.uint, i)
                count += 1
    return count


def _gather(column: cython.const[cython.uint][::1], rows: cython.const[cython.uint][::1]) -> array[int]:
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(rows)
    found = array("I", [0]) * n
    out: cython.uint[::1] = found
    with cython.nogil:
        for i in range(n):
            out[i] = column[rows[i]]
    return found
