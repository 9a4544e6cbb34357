# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""The checksum of TFRecord files: CRC-32C, Castagnoli's polynomial."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
POLYNOMIAL = 0x82F63B78
MASK = 0xFFFFFFFF


def _table() -> array[int]:
    """What each byte does to the checksum."""
    found = array("I")
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


_TABLE = _table()


def crc32c(data: cython.const[cython.uchar][::1]) -> int:
    """The checksum of the bytes."""
    table: cython.const[cython.uint][::1] = _TABLE
    value: cython.uint = MASK
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(data)
    with cython.nogil:
        for i in range(n):
            value = table[(value ^ data[i]) & 255] ^ (value >> 8)
    return value ^ MASK
