"""Kernels of loops that only move data."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.loops import loop_work
from stepscope.analysis.xla.moving import moving_kernels
from tests.builders.hlo import program

# A loop over layers: it picks the weights of its turn, and computes a mask that needs no turn before.
LAYERS = """
picks:
  all = f32[12,8,8] parameter(0)
  turn = s32[] parameter(1)
  one = s32[] constant(1)
  place = s32[] add(turn, one)
  zero = s32[] constant(0)
  layer = f32[1,8,8] dynamic-slice(all, place, zero, zero)
  weights = f32[8,8] bitcast(layer)
draws:
  turn = s32[] parameter(0)
  numbers = s32[8,8] broadcast(turn)
  mask = s32[8,8] xor(numbers, numbers)
layers:
  given = (s32[], f32[8,8], f32[12,8,8]) parameter(0)
  turn = s32[] get-tuple-element(given) index=0
  x = f32[8,8] get-tuple-element(given) index=1
  all = f32[12,8,8] get-tuple-element(given) index=2
  one = s32[] constant(1)
  next = s32[] add(turn, one)
  picked = f32[8,8] fusion(all, turn) calls=picks
  masked = s32[8,8] fusion(turn) calls=draws {name}
  chosen = f32[8,8] add(masked, x)
  product = f32[8,8] dot(chosen, picked) contracts=1,0
  state = (s32[], f32[8,8], f32[12,8,8]) tuple(next, product, all)
main:
  zero = s32[] constant(0)
  x = f32[8,8] parameter(0)
  all = f32[12,8,8] parameter(1)
  start = (s32[], f32[8,8], f32[12,8,8]) tuple(zero, x, all)
  loop = (s32[], f32[8,8], f32[12,8,8]) while(start) calls=layers trips=12
"""


def test_what_picks_a_layer_moves_and_what_draws_a_mask_computes() -> None:
    module = Module(program(LAYERS.format(name="")))
    assert {"picked", "masked"} <= loop_work(module).early
    moving = moving_kernels(module)
    assert "picked" in moving
    assert moving.isdisjoint({"masked", "chosen", "product"})


def test_what_is_recomputed_to_save_memory_stays_in_its_turn() -> None:
    again = "op_name=jit(f)/transpose(jvp())/while/body/checkpoint/rematted_computation/xor"
    found = loop_work(Module(program(LAYERS.format(name=again))))
    assert "masked" in found.staying
    assert "masked" not in found.leaving
