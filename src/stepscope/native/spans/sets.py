# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Sets of time spans, by the million: union, intersection, difference, sum.

Columns come and go as buffers of int64. A span holds its start, and not its end.
"""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal, need_sorted

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)


def union(
    start: cython.const[cython.longlong][::1], end: cython.const[cython.longlong][::1]
) -> tuple[array[int], array[int]]:
    """The intervals (sorted by start) merged where they overlap or touch; empty ones vanish."""
    need_equal(len(start), len(end))
    need_sorted(start)
    starts, ends = _empty_spans(len(start))
    return _cut(_merge(start, end, starts, ends), starts, ends)


def intersect(
    a_start: cython.const[cython.longlong][::1],
    a_end: cython.const[cython.longlong][::1],
    b_start: cython.const[cython.longlong][::1],
    b_end: cython.const[cython.longlong][::1],
) -> tuple[array[int], array[int]]:
    """The time in both sets; each set is sorted and disjoint, as `union` gives them."""
    need_equal(len(a_start), len(a_end))
    need_equal(len(b_start), len(b_end))
    starts, ends = _empty_spans(len(a_start) + len(b_start))
    return _cut(_common(a_start, a_end, b_start, b_end, starts, ends), starts, ends)


def subtract(
    a_start: cython.const[cython.longlong][::1],
    a_end: cython.const[cython.longlong][::1],
    b_start: cython.const[cython.longlong][::1],
    b_end: cython.const[cython.longlong][::1],
) -> tuple[array[int], array[int]]:
    """The time in the first set and not in the second; each set is sorted and disjoint."""
    need_equal(len(a_start), len(a_end))
    need_equal(len(b_start), len(b_end))
    starts, ends = _empty_spans(len(a_start) + len(b_start))
    return _cut(_remainder(a_start, a_end, b_start, b_end, starts, ends), starts, ends)


def total(start: cython.const[cython.longlong][::1], end: cython.const[cython.longlong][::1]) -> int:
    """The sum of the lengths; only for disjoint sets is it the time covered."""
    need_equal(len(start), len(end))
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(start)
    found: cython.longlong = 0
    with cython.nogil:
        for i in range(n):
            if end[i] > start[i]:
                found += end[i] - start[i]
    return found


def _empty_spans(count: int) -> tuple[array[int], array[int]]:
    return array("q", [0]) * count, array("q", [0]) * count


def _cut(count: int, starts: array[int], ends: array[int]) -> tuple[array[int], array[int]]:
    del starts[count:], ends[count:]
    return starts, ends


@cython.cfunc
def _merge(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    starts: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(start)
    count: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            if end[i] <= start[i]:
                continue
            if count and start[i] <= ends[count - 1]:
                if end[i] > ends[count - 1]:
                    ends[count - 1] = end[i]
            else:
                starts[count] = start[i]
                ends[count] = end[i]
                count += 1
    return count


@cython.cfunc
def _common(
    a_start: cython.const[cython.longlong][::1],
    a_end: cython.const[cython.longlong][::1],
    b_start: cython.const[cython.longlong][::1],
    b_end: cython.const[cython.longlong][::1],
    starts: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = len(a_start)
    m: cython.Py_ssize_t = len(b_start)
    count: cython.Py_ssize_t = 0
    begin: cython.longlong
    end: cython.longlong
    with cython.nogil:
        while i < n and k < m:
            begin = a_start[i] if a_start[i] > b_start[k] else b_start[k]
            end = a_end[i] if a_end[i] < b_end[k] else b_end[k]
            if begin < end:
                starts[count] = begin
                ends[count] = end
                count += 1
            if a_end[i] < b_end[k]:
                i += 1
            else:
                k += 1
    return count


@cython.cfunc
def _remainder(
    a_start: cython.const[cython.longlong][::1],
    a_end: cython.const[cython.longlong][::1],
    b_start: cython.const[cython.longlong][::1],
    b_end: cython.const[cython.longlong][::1],
    starts: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = len(a_start)
    m: cython.Py_ssize_t = len(b_start)
    count: cython.Py_ssize_t = 0
    at: cython.longlong
    with cython.nogil:
        for i in range(n):
            at = a_start[i]
            while at < a_end[i]:
                if k < m and b_end[k] <= at:
                    k += 1
                elif k < m and b_start[k] <= at:
                    at = b_end[k]
                else:
                    starts[count] = at
                    at = b_start[k] if k < m and b_start[k] < a_end[i] else a_end[i]
                    ends[count] = at
                    count += 1
    return count
