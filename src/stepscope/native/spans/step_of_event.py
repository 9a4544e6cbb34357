# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""The step of each event: that of the marker around its start, or that of the call which launched it.

Steps come as a column of numbers and one of bits, one a row, lowest first: 0 where the row belongs to no step.
"""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal, need_sorted

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)


def by_time(
    start: cython.const[cython.longlong][::1],
    marker_start: cython.const[cython.longlong][::1],
    marker_end: cython.const[cython.longlong][::1],
    number: cython.const[cython.int][::1],
) -> tuple[array[int], bytearray]:
    """For each start the number of the last marker, sorted by start, to begin by then, unless that has ended."""
    need_equal(len(marker_start), len(marker_end), len(number))
    need_sorted(marker_start)
    n: cython.Py_ssize_t = len(start)
    last: cython.Py_ssize_t = len(marker_start) - 1
    result, found = array("i", bytes(4 * len(start))), bytearray((len(start) + 7) // 8)
    step: cython.int[::1] = result
    bits: cython.uchar[::1] = found
    at: cython.Py_ssize_t = -1
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            # Neighbours mostly lie in the same marker.
            if (at >= 0 and start[i] < marker_start[at]) or (at < last and start[i] >= marker_start[at + 1]):
                at = _last_begun(marker_start, last, start[i])
            if at >= 0 and start[i] < marker_end[at]:
                step[i] = number[at]
                bits[i >> 3] |= cython.cast(cython.uchar, 1 << (i & 7))
    return result, found


@cython.cfunc
@cython.nogil
@cython.exceptval(-9)
def _last_begun(
    marker_start: cython.const[cython.longlong][::1], last: cython.Py_ssize_t, time: cython.longlong
) -> cython.Py_ssize_t:
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = last + 1
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if marker_start[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


def by_launch(
    begin: cython.const[cython.uint][::1],
    end: cython.const[cython.uint][::1],
    step: cython.const[cython.int][::1],
    bits: cython.const[cython.uchar][::1],
) -> tuple[array[int], bytearray]:
    """The steps, where what was launched belongs to the step of its launch: of the first one that has a step."""
    need_equal(len(begin), len(end))
    n: cython.Py_ssize_t = len(begin)
    result, found = array("i"), bytearray(bits)
    result.frombytes(memoryview(step).cast("B"))
    out: cython.int[::1] = result
    known: cython.uchar[::1] = found
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n - 1, -1, -1):
            if bits[begin[i] >> 3] >> (begin[i] & 7) & 1:
                out[end[i]] = step[begin[i]]
                known[end[i] >> 3] |= cython.cast(cython.uchar, 1 << (end[i] & 7))
    return result, found
