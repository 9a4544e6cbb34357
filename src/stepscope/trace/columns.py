"""Memory shared with Polars, without a copy and without numpy: the Arrow C data interface, through ctypes.

The hot loops fill plain buffers; `series` lends such a buffer to Polars, `buffer` looks into a Polars column.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, cast

import polars as pl

from stepscope.native import order

_FORMATS: dict[Any, tuple[bytes, str]] = {
    pl.Int8: (b"c", "b"),
    pl.UInt8: (b"C", "B"),
    pl.Int16: (b"s", "h"),
    pl.UInt16: (b"S", "H"),
    pl.Int32: (b"i", "i"),
    pl.UInt32: (b"I", "I"),
    pl.Int64: (b"l", "q"),
    pl.UInt64: (b"L", "Q"),
    pl.Float32: (b"f", "f"),
    pl.Float64: (b"g", "d"),
}


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


# Given as a bare address: at exit, when Polars gives buffers back, the types of ctypes may be gone.
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

# Buffers that Polars still uses, by the address handed out with them.
_lent: dict[int, tuple[Any, ...]] = {}


def _forget_schema(schema: int) -> None:
    _Schema.from_address(schema).release = _Release()


def _forget_array(array: int, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
    if not is_ending():  # then the memory goes with the process
        found = _Array.from_address(array)
        _lent.pop(found.private_data, None)
        found.release = _Release()


_release_schema = _Release(_forget_schema)
_release_array = _Release(_forget_array)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_release_array))  # called even after this module is gone


class _Lent:
    """Buffers as an Arrow array of one primitive type, or of byte strings behind their offsets."""

    def __init__(
        self,
        data: tuple[memoryview, ...],
        arrow_format: bytes,
        length: int,
        validity: memoryview | None = None,
    ) -> None:
        self.data = data
        self.validity = validity
        self.arrow_format = arrow_format
        self.length = length

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        views = (self.validity, *self.data)
        windows = [
            None if view is None else (ctypes.c_char * view.nbytes).from_buffer(view) for view in views
        ]
        addresses = [None if window is None else ctypes.addressof(window) for window in windows]
        buffers = (ctypes.c_void_p * len(addresses))(*addresses)
        key = ctypes.addressof(buffers)
        schema = _Schema(self.arrow_format, b"", None, 0, 0, None, None, _release_schema, None)
        pointer = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
        null_count = 0 if self.validity is None else -1  # -1: not counted yet
        array = _Array(self.length, null_count, 0, len(buffers), 0, pointer, None, None, _release_array, key)
        _lent[key] = (*windows, buffers)
        # The consumer moves both structures out while this object is alive; only the buffers must outlive it.
        self.structures = (schema, array)
        return (
            _new_capsule(ctypes.addressof(schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(array), b"arrow_array", None),
        )


def series(name: str, data: Any, dtype: Any, validity: Any = None) -> pl.Series:
    """The writable buffer as a column, without a copy. The buffer must not change or grow afterwards.

    `validity` is an Arrow bitmap: one bit a row, lowest first, 0 where the row is null.
    """
    arrow_format, code = _FORMATS[dtype]
    view = memoryview(data).cast("B")
    length = view.nbytes // ctypes.sizeof(_ITEM[code])
    if length == 0:
        return pl.Series(name, [], dtype=dtype)
    bits = None if validity is None else memoryview(validity).cast("B")
    if bits is not None and bits.nbytes * 8 < length:
        raise ValueError(f"column {name} has too few validity bits")
    return pl.Series(name, _Lent((view,), arrow_format, length, bits)).alias(name)


def repeated(value: object, count: int, dtype: Any, name: str = "") -> pl.Series:
    """The same value `count` times. Polars' own `repeat` makes a query of it, which costs more than small columns do."""
    found: pl.Series = pl.Series(name, [value], dtype=dtype).new_from_index(0, count)
    return found


def rows_or_null(name: str, rows: Any) -> pl.Series:
    """A writable buffer of row numbers as a column, null where one is NONE."""
    return series(name, rows, pl.UInt32, order.validity(rows))


def byte_strings(name: str, offsets: Any, data: Any) -> pl.Series:
    """Byte strings that are end to end in a writable buffer; string n is data[offsets[n]:offsets[n + 1]]."""
    where = memoryview(offsets).cast("B")
    length = where.nbytes // 8 - 1
    if length <= 0:
        return pl.Series(name, [], dtype=pl.Binary)
    view = memoryview(data).cast("B")
    return pl.Series(
        name, _Lent((where, view if view.nbytes else memoryview(bytearray(1))), b"Z", length)
    ).alias(name)


_ITEM: dict[str, Any] = {
    "b": ctypes.c_int8,
    "B": ctypes.c_uint8,
    "h": ctypes.c_int16,
    "H": ctypes.c_uint16,
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}


def buffer(column: pl.Series) -> memoryview:
    """The values of a numeric column without nulls, read in place. The column lives as long as the view."""
    if column.null_count():
        raise ValueError(f"column {column.name} has nulls")
    _, code = _FORMATS[column.dtype]
    if len(column) == 0:
        return _as_items(memoryview(b""), code)
    column = column.rechunk()
    capsule = column.__arrow_c_stream__()
    stream = _Stream.from_address(_capsule_pointer(capsule, b"arrow_array_stream"))
    array = _Array()
    if stream.get_next(ctypes.byref(stream), ctypes.byref(array)) != 0 or array.length != len(column):
        raise ValueError(f"column {column.name} cannot be read in place")
    item = ctypes.sizeof(_ITEM[code])
    address = array.buffers[1] + array.offset * item
    window = (ctypes.c_char * (array.length * item)).from_address(address)
    window._owner = _Owner(column, array)
    return _as_items(memoryview(window).cast("B"), code)


def _as_items(view: memoryview, code: Any) -> memoryview:
    return cast("memoryview", view.cast(code))


class _Owner:
    """Gives a borrowed array back when the last view of it is gone."""

    def __init__(self, column: pl.Series, array: _Array) -> None:
        self.column = column
        self.array = array

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending() and self.array.release:
            self.array.release(ctypes.addressof(self.array))
