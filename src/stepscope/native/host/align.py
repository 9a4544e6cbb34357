# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Two sequences of launches laid beside each other, such that as many as possible agree (Myers' greedy difference)."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

NONE = 0xFFFFFFFF


def align(a: cython.const[cython.uint][::1], b: cython.const[cython.uint][::1], most: int) -> array[int]:
    """For each element of `a` the place of its counterpart in `b`, or NONE; all NONE if more than `most` elements have none."""
    n: cython.Py_ssize_t = len(a)
    m: cython.Py_ssize_t = len(b)
    limit: cython.Py_ssize_t = min(max(most, 0), n + m)
    places = array("I", [NONE]) * n
    out: cython.uint[::1] = places
    # The furthest place in `a` on each diagonal, for every number of differences so far: row d begins at d * d.
    kept = array("q", [0]) * ((limit + 1) * (limit + 1))
    far: cython.longlong[::1] = kept
    d: cython.Py_ssize_t
    k: cython.Py_ssize_t
    x: cython.Py_ssize_t = 0
    y: cython.Py_ssize_t = 0
    before: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = -1
    start_x: cython.Py_ssize_t
    start_y: cython.Py_ssize_t
    with cython.nogil:
        for d in range(limit + 1):
            for k in range(-d, d + 1, 2):
                if d == 0:
                    x = 0
                else:
                    before = (d - 1) * (d - 1) + d - 1
                    if k == -d or (k != d and far[before + k - 1] < far[before + k + 1]):
                        x = far[before + k + 1]
                    else:
                        x = far[before + k - 1] + 1
                y = x - k
                while x < n and y < m and a[x] == b[y]:
                    x += 1
                    y += 1
                far[d * d + d + k] = x
                if x == n and y == m:
                    found = d
                    break
            if found >= 0:
                break
        x = n
        y = m
        for d in range(found, -1, -1):
            k = x - y
            start_x = start_y = 0
            if d > 0:
                before = (d - 1) * (d - 1) + d - 1
                if k == -d or (k != d and far[before + k - 1] < far[before + k + 1]):
                    k += 1
                    start_x = far[before + k]
                    start_y = start_x - k + 1
                else:
                    k -= 1
                    start_x = far[before + k] + 1
                    start_y = start_x - 1 - k
            while x > start_x and y > start_y:
                x -= 1
                y -= 1
                out[x] = y
            if d > 0:
                x = far[before + k]
                y = x - k
    return places
