# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""What the hot loops demand of their columns before they start."""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
ROW_LIMIT = 0xFFFFFFFF


def need_equal(*lengths: int) -> None:
    """Columns of one table are equally long, and short enough for 32-bit row numbers."""
    if len(set(lengths)) > 1:
        raise ValueError(f"the columns differ in length: {lengths}")
    if lengths[0] >= ROW_LIMIT:
        raise ValueError(f"{lengths[0]} rows are too many for 32-bit row numbers")


def need_sorted(start: cython.const[cython.longlong][::1]) -> None:
    """Spans come sorted by start."""
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(start)
    late: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(1, n):
            if start[i] < start[i - 1]:
                late = i
                break
    if late:
        raise ValueError(f"the spans are not sorted by start: row {late} starts before row {late - 1}")
