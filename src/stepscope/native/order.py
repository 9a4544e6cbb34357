# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Row numbers: of a sort, of what is met first, and of ancestors where parents come before their children."""

from __future__ import annotations

from array import array

from stepscope.native.buffers import column
from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF


def invert(permutation: cython.const[cython.uint][::1]) -> memoryview:
    """Where each row went: invert([2, 0, 1]) is [1, 2, 0]."""
    n: cython.Py_ssize_t = permutation.shape[0] if COMPILED else len(permutation)
    result = column("I", n)
    out: cython.uint[::1] = result
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            out[permutation[i]] = cython.cast(cython.uint, i)
    return result


def is_sorted(
    track: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
) -> bool:
    """Whether rows come by track, then start, then longer first."""
    need_equal(len(track), len(start), len(dur))
    n: cython.Py_ssize_t = len(track)
    i: cython.Py_ssize_t
    found: cython.bint = True
    with cython.nogil:
        for i in range(1, n):
            if track[i] != track[i - 1]:
                found = track[i] > track[i - 1]
            elif start[i] != start[i - 1]:
                found = start[i] > start[i - 1]
            else:
                found = dur[i] <= dur[i - 1]
            if not found:
                break
    return bool(found)


def ascends(major: cython.const[cython.uint][::1], minor: cython.const[cython.uint][::1]) -> bool:
    """Whether each pair is greater than the one before it."""
    need_equal(len(major), len(minor))
    n: cython.Py_ssize_t = len(major)
    i: cython.Py_ssize_t
    found: cython.bint = True
    with cython.nogil:
        for i in range(1, n):
            if major[i] < major[i - 1] or (major[i] == major[i - 1] and minor[i] <= minor[i - 1]):
                found = False
                break
    return bool(found)


def by_key(key: cython.const[cython.uint][::1], size: int) -> array[int]:
    """The rows by their keys, which are below `size`; rows with the same key stay in order."""
    n: cython.Py_ssize_t = len(key)
    result = array("I", [0]) * len(key)
    out: cython.uint[::1] = result
    place: cython.uint[::1] = array("I", [0]) * (size + 1)
    keys: cython.Py_ssize_t = size
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            place[key[i] + 1] += 1
        for i in range(keys):
            place[i + 1] += place[i]
        for i in range(n):
            out[place[key[i]]] = cython.cast(cython.uint, i)
            place[key[i]] += 1
    return result


def first_rows(codes: cython.const[cython.uint][::1], size: int) -> array[int]:
    """The row of each code, below `size`, where it is met first."""
    n: cython.Py_ssize_t = len(codes)
    result = array("I", bytes(4 * min(size, len(codes))))
    out: cython.uint[::1] = result
    seen: cython.uchar[::1] = bytearray(size)
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            if not seen[codes[i]]:
                seen[codes[i]] = 1
                out[count] = cython.cast(cython.uint, i)
                count += 1
    return result[:count]


def presence(values: cython.const[cython.longlong][::1], missing: cython.longlong) -> tuple[bytearray, int]:
    """A bit for each value, lowest first: 0 where it is missing; and how many are not."""
    n: cython.Py_ssize_t = len(values)
    result = bytearray((n + 7) // 8)
    bits: cython.uchar[::1] = result
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            if values[i] != missing:
                bits[i >> 3] |= cython.cast(cython.uchar, 1 << (i & 7))
                count += 1
    return result, count


def validity(rows: cython.const[cython.uint][::1]) -> bytearray:
    """A bit for each row, lowest first: 0 where it is NONE."""
    n: cython.Py_ssize_t = len(rows)
    result = bytearray((n + 7) // 8)
    bits: cython.uchar[::1] = result
    none: cython.uint = NONE
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            if rows[i] != none:
                bits[i >> 3] |= cython.cast(cython.uchar, 1 << (i & 7))
    return result


def first_of_each(key: cython.const[cython.uint][::1], size: int) -> memoryview:
    """For each key below `size` the first row that has it, or NONE."""
    result = column("I", size)
    out: cython.uint[::1] = result
    none: cython.uint = NONE
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(out)):
            out[i] = none
        for i in range(len(key) - 1, -1, -1):
            out[key[i]] = cython.cast(cython.uint, i)
    return result


def largest_of_each(
    key: cython.const[cython.uint][::1], value: cython.const[cython.longlong][::1], size: int
) -> memoryview:
    """For each key below `size` the row with its largest value, the first of several, or NONE."""
    need_equal(len(key), len(value))
    result = column("I", size)
    out: cython.uint[::1] = result
    none: cython.uint = NONE
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(out)):
            out[i] = none
        for i in range(len(key)):
            if out[key[i]] == none or value[i] > value[out[key[i]]]:
                out[key[i]] = cython.cast(cython.uint, i)
    return result


def nearest(parent: cython.const[cython.uint][::1], wanted: cython.const[cython.uchar][::1]) -> memoryview:
    """For each row its closest ancestor that is wanted, or NONE. A parent that does not come first is no parent."""
    n: cython.Py_ssize_t = parent.shape[0] if COMPILED else len(parent)
    result = column("I", n)
    out: cython.uint[::1] = result
    none: cython.uint = NONE
    up: cython.uint
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            up = parent[i]
            if up == none or up >= i:
                out[i] = none
            elif wanted[up]:
                out[i] = up
            else:
                out[i] = out[up]
    return result


def subtree_sums(
    parent: cython.const[cython.uint][::1], value: cython.const[cython.longlong][::1]
) -> memoryview:
    """For each row its own value and those of all rows below it. A parent that does not come first is no parent."""
    n: cython.Py_ssize_t = len(parent)
    result = column("q", len(value))
    result[:] = memoryview(value)
    out: cython.longlong[::1] = result
    none: cython.uint = NONE
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n - 1, -1, -1):
            if parent[i] != none and parent[i] < i:
                out[parent[i]] += out[i]
    return result
