"""What the kernels of a loop move in one turn."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.sizes.turn_bytes import turn_bytes
from tests.builders.hlo import program

CODE = """
picks:
  all = f32[100,8] parameter(0)
  turn = s32[] parameter(1)
  zero = s32[] constant(0)
  row = f32[1,8] dynamic-slice(all, turn, zero)
  twice = f32[1,8] add(row, row)
writes:
  outputs = f32[100,8] parameter(0)
  value = f32[8] parameter(1)
  turn = s32[] parameter(2)
  zero = s32[] constant(0)
  row = f32[1,8] bitcast(value)
  all = f32[100,8] dynamic-update-slice(outputs, row, turn, zero)
multiplies:
  left = f32[8,8] parameter(0)
  product = f32[8,8] dot(left, left) contracts=1,0
main:
  all = f32[100,8] parameter(0)
  value = f32[8] parameter(1)
  turn = s32[] parameter(2)
  square = f32[8,8] parameter(3)
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(turn, one)
  picked = f32[1,8] fusion(all, turn) calls=picks
  written = f32[100,8] fusion(all, value, turn) calls=writes
  updated = f32[100,8] dynamic-update-slice(all, picked, turn, zero)
  copied = f32[100,8] copy(all)
  product = f32[8,8] fusion(square) calls=multiplies
"""


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("next", 3 * 4),
        ("picked", 4 + 2 * 32),
        ("written", 4 + 2 * 32),
        ("updated", 2 * 4 + 2 * 32),
        ("copied", 2 * 3200),
        ("product", None),
    ],
)
def test_only_the_row_of_the_turn_moves(name: str, size: int | None) -> None:
    module = Module(program(CODE))
    beside = module.instructions(module.entry)
    (one,) = (each for each in beside if each.name == name)
    assert turn_bytes(module, one, beside) == size


def test_a_circle_of_views_is_followed_once() -> None:
    """No compiler writes one, but a damaged file may have it."""
    module = Module(program(CODE))
    beside = module.instructions(module.entry)
    (one,) = (each for each in beside if each.name == "written")
    inside = module.instructions(one.called[0])
    (row,) = (each for each in inside if each.name == "row")
    row.operands.append(row.id)
    assert turn_bytes(module, one, beside) == 4 + 2 * 32
