"""What depends on arguments that stay the same, and on nothing that changes."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.same_work import SameWork, same_work
from tests.builders.hlo import program

WEIGHT, TOKENS, LATENT = 0, 1, 2
CODE = """
inner:
  q = (f32[8,8], f32[8,8]) parameter(0)
  x = f32[8,8] get-tuple-element(q) index=0
  w = f32[8,8] get-tuple-element(q) index=1
  layer = f32[8,8] dot(x, w) op_name=jit(f)/jit(encode)/while/body/dot_general
  turned = (f32[8,8], f32[8,8]) tuple(layer, w)
main:
  weight = f32[8,8] parameter(0)
  tokens = s32[8] parameter(1)
  latent = f32[8,8] parameter(2)
  cast = f32[8,8] convert(weight)
  used = f32[8,8] negate(weight)
  rows = f32[8,8] gather(cast, tokens) op_name=jit(f)/jit(encode)/gather
  start = (f32[8,8], f32[8,8]) tuple({state}, weight)
  loop = (f32[8,8], f32[8,8]) while(start) calls=inner trips=4
  text = f32[8,8] get-tuple-element(loop) index=0
  {more}
  mixed = f32[8,8] add(latent, text)
  root = f32[8,8] multiply(mixed, used)
"""


def found_in(state: str = "rows", more: str = "norm = f32[8,8] tanh(text)") -> SameWork:
    module = read_module(program(CODE.format(state=state, more=more)))
    return same_work(module, [LATENT], [TOKENS])


def test_a_loop_is_of_it_as_a_whole_with_the_cast_that_only_it_needs() -> None:
    found = found_in()
    assert found.names >= {"cast", "rows", "loop", "layer", "norm"}
    assert not found.names & {"used", "mixed", "root"}
    assert found.scope == "encode"


def test_a_loop_whose_state_changes_is_not() -> None:
    found = found_in(state="latent")
    assert not found.names & {"loop", "layer", "norm"}


def test_nor_is_what_python_or_the_device_makes_anew() -> None:
    for made in ("custom-call(text) target=xla_ffi_python_gpu_callback", "rng(text)"):
        assert "norm" not in found_in(more=f"norm = f32[8,8] {made}").names


def test_a_computation_that_two_loops_share_is_not_told_apart() -> None:
    again = (
        "begin = (f32[8,8], f32[8,8]) tuple(latent, weight)\n"
        "  norm = (f32[8,8], f32[8,8]) while(begin) calls=inner trips=4"
    )
    found = found_in(more=again)
    assert "rows" in found.names
    assert "layer" not in found.names
