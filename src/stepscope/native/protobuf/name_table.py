# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""A hash table from (domain, id) to a row, laid out in plain columns for other hot loops to look things up in."""

from __future__ import annotations

from array import array

from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


def table(
    domain: cython.const[cython.uint][::1],
    ids: cython.const[cython.longlong][::1],
    rows: cython.const[cython.uint][::1],
    odd: cython.ulonglong,
) -> tuple[array[int], array[int], array[int]]:
    """Columns of domain, id and one more than the row (0: free), as long as a power of two; a later key wins.

    A key belongs at the high bits of (id ^ domain << 40) * odd, or at the next free place after. `odd` is random,
    because ids come from files that nobody vouches for.
    """
    need_equal(len(domain), len(ids), len(rows))
    bits: cython.int = max(4, (2 * len(ids) + 1).bit_length())
    slot_domain = array("I", bytes(4 << bits))
    slot_id = array("q", bytes(8 << bits))
    slot_row = array("I", bytes(4 << bits))
    domain_at: cython.uint[::1] = slot_domain
    id_at: cython.longlong[::1] = slot_id
    row_at: cython.uint[::1] = slot_row
    mask: cython.ulonglong = len(slot_row) - 1
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(ids)
    at: cython.ulonglong
    with cython.nogil:
        for i in range(n):
            at = domain[i]
            at = ((cython.cast(cython.ulonglong, ids[i]) ^ (at << 40)) * odd) & _ALL_BITS
            at = at >> (64 - bits)
            while row_at[at] and (id_at[at] != ids[i] or domain_at[at] != domain[i]):
                at = (at + 1) & mask
            domain_at[at] = domain[i]
            id_at[at] = ids[i]
            row_at[at] = rows[i] + 1
    return slot_domain, slot_id, slot_row
