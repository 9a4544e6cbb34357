"""What a program computes from its weights alone."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeats.weight_work import WeightWork, weight_work
from tests.builders.hlo import program

WEIGHTS, TOKENS = (0, 1), (2,)
CODE = """
cast:
  stack = f32[4,8,8] parameter(0)
  turn = s32[] parameter(1)
  picked = f32[1,8,8] dynamic-slice(stack, turn)
  narrow = bf16[1,8,8] convert(picked)
pick:
  all = f32[4,8,8] parameter(0)
  at = s32[] parameter(1)
  part = f32[1,8,8] dynamic-slice(all, at)
body:
  p = (s32[], f32[8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(p) index=0
  x = f32[8,8] get-tuple-element(p) index=1
  layers = f32[4,8,8] get-tuple-element(p) index=2
  layer = bf16[1,8,8] fusion(layers, i) calls=cast
  moved = f32[1,8,8] fusion(layers, i) calls=pick
  new = f32[8,8] dot({given}, layer)
  next = s32[] add(i, i)
  turned = (s32[], f32[8,8], f32[4,8,8]) tuple(next, new, {kept})
main:
  layers = f32[4,8,8] parameter(0)
  table = f32[64,8] parameter(1)
  tokens = s32[8] parameter(2)
  zero = s32[] constant()
  small = bf16[64,8] convert(table) op_name=jit(f)/narrowed/convert
  x = f32[8,8] gather(small, tokens)
  start = (s32[], f32[8,8], f32[4,8,8]) tuple(zero, x, layers)
  loop = (s32[], f32[8,8], f32[4,8,8]) while(start) calls=body trips=4
  out = f32[8,8] get-tuple-element(loop) index=1
  root = f32[8,8] multiply(out, x)
"""


def found_in(kept: str = "layers", given: str = "x") -> WeightWork:
    return weight_work(read_module(program(CODE.format(kept=kept, given=given))), WEIGHTS, TOKENS)


def test_what_needs_tokens_is_not_of_the_weights_alone() -> None:
    found = found_in()
    assert found.once == {"small"}
    assert found.scope == "narrowed"


def test_a_loop_over_layers_casts_the_same_weights_in_each_turn() -> None:
    # To pick the weights of a layer is not to compute, and products of the state are not of the weights alone.
    assert found_in().in_loops == {"layer"}


def test_a_loop_that_changes_the_weights_in_a_turn_does_not() -> None:
    code = CODE.format(kept="scaled", given="x").replace(
        "  turned =", "  scaled = f32[4,8,8] multiply(layers, new)\n  turned ="
    )
    assert weight_work(read_module(program(code)), WEIGHTS, TOKENS).in_loops == frozenset()


def test_a_loop_without_tokens_runs_once_as_a_whole() -> None:
    found = weight_work(read_module(program(CODE.format(kept="layers", given="x"))), (*WEIGHTS, *TOKENS), ())
    assert found.once >= {"small", "x", "loop", "new", "root"}
    assert found.in_loops == frozenset()
