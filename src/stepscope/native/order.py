# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Row numbers: inverting a sort, and finding ancestors in a table whose parents come before their children."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF


def invert(permutation: cython.const[cython.uint][::1]) -> array[int]:
    """Where each row went: invert([2, 0, 1]) is [1, 2, 0]."""
    n: cython.Py_ssize_t = permutation.shape[0] if COMPILED else len(permutation)
    result = array("I", bytes(4 * n))
    out: cython.uint[::1] = result
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            out[permutation[i]] = cython.cast(cython.uint, i)
    return result


def nearest(parent: cython.const[cython.uint][::1], wanted: cython.const[cython.uchar][::1]) -> array[int]:
    """For each row its closest ancestor that is wanted, or NONE. A parent that does not come first is no parent."""
    n: cython.Py_ssize_t = parent.shape[0] if COMPILED else len(parent)
    result = array("I", bytes(4 * n))
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
) -> array[int]:
    """For each row its own value and those of all rows below it. A parent that does not come first is no parent."""
    n: cython.Py_ssize_t = len(parent)
    result = array("q", value)
    out: cython.longlong[::1] = result
    none: cython.uint = NONE
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n - 1, -1, -1):
            if parent[i] != none and parent[i] < i:
                out[parent[i]] += out[i]
    return result
