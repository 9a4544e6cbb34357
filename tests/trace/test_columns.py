"""Memory shared with Polars in both directions, without a copy and for as long as it is used."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from array import array
from mmap import mmap
from typing import Any

import polars as pl
import pytest

from stepscope.trace import columns
from stepscope.trace.columns import buffer, byte_strings, series
from tests.patience import PATIENCE_S

TYPES = [
    (pl.Int8, "b", [-128, 0, 127]),
    (pl.UInt8, "B", [0, 255]),
    (pl.Int16, "h", [-32768, 32767]),
    (pl.UInt16, "H", [0, 65535]),
    (pl.Int32, "i", [-(2**31), 2**31 - 1]),
    (pl.UInt32, "I", [0, 2**32 - 1]),
    (pl.Int64, "q", [-(2**63), 2**63 - 1]),
    (pl.UInt64, "Q", [0, 2**64 - 1]),
    (pl.Float32, "f", [0.5, -2.0]),
    (pl.Float64, "d", [0.1, float("inf")]),
]


@pytest.mark.parametrize(("dtype", "code", "values"), TYPES, ids=lambda value: str(value))
def test_there_and_back(dtype: Any, code: str, values: list[Any]) -> None:
    found = series("x", array(code, values), dtype)
    assert (found.name, found.dtype, found.to_list()) == ("x", dtype, values)
    view = buffer(found)
    assert (view.format, view.tolist(), view.readonly or True) == (code, values, True)


@pytest.mark.parametrize(("dtype", "code"), [case[:2] for case in TYPES], ids=lambda value: str(value))
def test_empty(dtype: Any, code: str) -> None:
    found = series("x", array(code), dtype)
    assert (found.dtype, len(found)) == (dtype, 0)
    assert (len(buffer(found)), buffer(found).format) == (0, code)


def test_nothing_is_copied() -> None:
    data = array("q", [1, 2, 3])
    found = series("x", data, pl.Int64)
    data[1] = 7  # which nobody should do; here it shows that the memory is one
    assert found.to_list() == [1, 7, 3]
    assert buffer(found).tolist() == [1, 7, 3]
    data[2] = 9
    assert buffer(found)[2] == 9


@pytest.mark.parametrize("room", [bytearray(800), mmap(-1, 800), memoryview(bytearray(1600))[::1][:800]])
def test_any_writable_memory_can_be_lent(room: Any) -> None:
    memoryview(room).cast("B").cast("q")[5] = 42
    found = series("x", room, pl.Int64)
    assert (len(found), found[5], found.sum()) == (100, 42, 42)


def test_nulls() -> None:
    found = series("x", array("i", range(10)), pl.Int32, validity=bytearray([0b11111110, 0b01]))
    assert found.to_list() == [None, 1, 2, 3, 4, 5, 6, 7, 8, None]
    with pytest.raises(ValueError, match="column x has nulls"):
        buffer(found)
    with pytest.raises(ValueError, match="column x has too few validity bits"):
        series("x", array("i", range(10)), pl.Int32, validity=bytearray(1))


def test_slices_and_chunks_are_read_in_place_or_put_together() -> None:
    found = series("x", array("q", range(10)), pl.Int64)
    assert buffer(found[3:7]).tolist() == [3, 4, 5, 6]
    assert buffer(pl.concat([found[:2], found[8:]], rechunk=False)).tolist() == [0, 1, 8, 9]
    assert buffer(found.filter(found % 2 == 0)).tolist() == [0, 2, 4, 6, 8]


def test_byte_strings() -> None:
    offsets, data = array("q", [0, 3, 3, 5]), bytearray(b"abcde")
    found = byte_strings("x", offsets, data)
    assert found.to_list() == [b"abc", b"", b"de"]
    assert byte_strings("x", array("q", [0]), bytearray()).to_list() == []
    assert byte_strings("x", array("q", [0, 0, 0]), bytearray()).to_list() == [b"", b""]


class Room(bytearray):
    """Memory that tells when it is gone."""


def test_memory_lives_as_long_as_its_column_and_no_longer() -> None:
    room = Room(8 * 1000)
    gone = weakref.ref(room)
    before = set(columns._lent)  # by tests before this one, whose columns may go at any time
    found = series("x", room, pl.Int64).to_frame().with_columns(y=pl.col("x"))
    (mine,) = columns._lent.keys() - before
    del room
    gc.collect()
    assert gone() is not None
    assert found["y"].sum() == 0
    del found
    gc.collect()
    assert gone() is None
    assert mine not in columns._lent


def test_a_view_outlives_its_column() -> None:
    view = buffer(series("x", array("q", range(1000)), pl.Int64).filter(pl.Series([True, False] * 500)))
    gc.collect()
    assert view[499] == 998
    part = view[10:20]
    del view
    gc.collect()
    assert part.tolist() == list(range(20, 40, 2))


def test_columns_may_go_in_other_threads() -> None:
    frame = pl.DataFrame([series("x", array("q", range(10_000)), pl.Int64)])
    lazy = frame.lazy().with_columns(y=pl.col("x") % 7).group_by("y").agg(pl.col("x").sum()).sort("y")
    del frame
    gc.collect()
    expected = [sum(range(y, 10_000, 7)) for y in range(7)]
    assert lazy.collect()["x"].to_list() == expected


EXITING = """
import sys, threading
from array import array
import polars as pl
from stepscope.trace.columns import buffer, series
kept = series("x", array("q", range(1000)), pl.Int64)
sys.frame = kept.to_frame()          # goes after the modules
view = buffer(kept)
class Circle:
    pass
circle = Circle()
circle.me, circle.frame = circle, pl.DataFrame([series("y", array("d", [0.0] * 99), pl.Float64)])
"""


def test_python_may_end_while_columns_are_lent() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EXITING], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (ended.returncode, ended.stderr) == (0, "")
