"""Bytes that instructions of compiled programs read and write at least."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.sizes.touched_bytes import touched_bytes
from tests.builders.hlo import program

CODE = """
looks_up:
  table = f32[1000,8] parameter(0)
  places = s32[4,1] parameter(1)
  rows = f32[4,8] gather(table, places)
  twice = f32[4,8] add(rows, rows)
cuts_late:
  x = f32[100,8] parameter(0)
  all = f32[100,8] tanh(x)
  first = f32[10,8] slice(all) slices=0:10,0:8
rolls:
  x = f32[100,8] parameter(0)
  end = f32[99,8] slice(x) slices=1:100,0:8
  begin = f32[1,8] slice(x) slices=0:1,0:8
  turned = f32[100,8] concatenate(end, begin)
writes_and_sums:
  kept = f32[100,8] parameter(0)
  row = f32[1,8] parameter(1)
  turn = s32[] parameter(2)
  seen = f32[100,8] bitcast(kept)
  cache = f32[100,8] dynamic-update-slice(seen, row, turn, turn)
  again = f32[1,8] add(row, row)
  both = (f32[100,8], f32[1,8]) tuple(cache, again)
writes_into_zeros:
  row = f32[1,8] parameter(0)
  turn = s32[] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[100,8] broadcast(zero)
  padded = f32[100,8] dynamic-update-slice(zeros, row, turn, turn)
reads_what_it_wrote:
  kept = f32[100,8] parameter(0)
  row = f32[1,8] parameter(1)
  turn = s32[] parameter(2)
  cache = f32[100,8] dynamic-update-slice(kept, row, turn, turn)
  all = f32[100,8] tanh(cache)
main:
  table = f32[1000,8] parameter(0)
  places = s32[4,1] parameter(1)
  x = f32[100,8] parameter(2)
  row = f32[1,8] parameter(3)
  turn = s32[] parameter(4)
  looked_up = f32[4,8] fusion(table, places) calls=looks_up
  cut = f32[10,8] fusion(x) calls=cuts_late
  rolled = f32[100,8] fusion(x) calls=rolls
  written = (f32[100,8], f32[1,8]) fusion(x, row, turn) calls=writes_and_sums
  padded = f32[100,8] fusion(row, turn) calls=writes_into_zeros
  read = f32[100,8] fusion(x, row, turn) calls=reads_what_it_wrote
  gathered = f32[4,8] gather(table, places)
  part = f32[10,8] slice(x) slices=0:10,0:8
  updated = f32[100,8] dynamic-update-slice(x, row, turn, turn)
  updates = f32[4,8] parameter(5)
  scattered = f32[1000,8] scatter(table, places, updates)
  squared = f32[100,8] multiply(x, x)
  started = (f32[100,8], f32[100,8], u32[]) copy-start(x)
  copied = f32[100,8] copy-done(started)
  reducing = (f32[100,8], f32[10,8]) all-reduce-start(x, cut)
  reduced = (f32[100,8], f32[10,8]) all-reduce-done(reducing)
  gathering = (f32[1,8], f32[2,8]) all-gather-start(row)
  opaque = (f32[100,8], s8[4096]) custom-call(x) target=library
"""
ROW, ALL = 32, 3200


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("looked_up", 16 + 2 * 4 * ROW),
        ("gathered", 16 + 2 * 4 * ROW),
        ("cut", 2 * 10 * ROW),
        ("part", 2 * 10 * ROW),
        ("rolled", 2 * ALL),
        ("written", 4 + 3 * ROW),
        ("padded", 4 + ROW + ALL),
        ("read", 4 + ROW + 2 * ALL),
        ("updated", 4 + 2 * ROW),
        ("scattered", 16 + 2 * 4 * ROW),
        ("squared", 2 * ALL),
    ],
)
def test_only_what_is_touched_counts(name: str, size: int) -> None:
    assert _bytes_of(name) == size


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("started", 2 * ALL),
        ("copied", None),
        ("reducing", 2 * (ALL + 10 * ROW)),
        ("reduced", None),
        ("gathering", 3 * ROW),
    ],
)
def test_what_is_started_and_waited_for_counts_once(name: str, size: int | None) -> None:
    assert _bytes_of(name) == size


def test_memory_that_a_library_works_in_does_not_count() -> None:
    assert _bytes_of("opaque") == 2 * ALL


def test_a_circle_is_followed_once() -> None:
    """No compiler writes one, but a damaged file may have it."""
    module = Module(program(CODE))
    (one,) = (each for each in module.instructions(module.entry) if each.name == "written")
    inside = {each.name: each for each in module.instructions(one.called[0])}
    inside["seen"].operands[:] = [inside["seen"].id]
    assert touched_bytes(module, one, {}) == 4 + 2 * ROW + ALL


def _bytes_of(name: str) -> int | None:
    module = Module(program(CODE))
    beside = {each.id: each for each in module.instructions(module.entry)}
    (one,) = (each for each in beside.values() if each.name == name)
    return touched_bytes(module, one, beside)
