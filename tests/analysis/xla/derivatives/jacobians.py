"""Programs that compute derivatives of a small network for every sample of a batch, as JAX compiles them."""

from __future__ import annotations

from tests.builders.hlo import program

_BACK = "op_name=jit(f)/vmap(vmap(transpose(jvp())))/mul"
_FORTH = "op_name=jit(f)/vmap(vmap(jvp()))/mul"
_REST = "op_name=jit(f)/vmap()/mul"
# A network of 3 inputs and 16 outputs: a gradient of each output is carried back through two products.
BACKWARDS = f"""
main:
  x = f32[512,3] parameter(0)
  w1 = f32[3,64] parameter(1)
  w2 = f32[64,16] parameter(2)
  rows = s32[16,16] iota() dims=0
  columns = s32[16,16] iota() dims=1
  eye = pred[16,16] compare(rows, columns) direction=EQ op_name=jit(f)/vmap()/eq
  ones = f32[16,16] convert(eye) op_name=jit(f)/vmap()/convert_element_type
  h = f32[512,64] dot(x, w1) contracts=1,0 op_name=jit(f)/vmap(jvp())/dot_general
  seeds = f32[16,64] dot(ones, w2) contracts=1,1 {_BACK}
  slope = f32[512,16,64] broadcast(h) dims=0,2 {_BACK}
  each = f32[512,16,64] broadcast(seeds) dims=1,2 {_BACK}
  mul = f32[512,16,64] multiply(slope, each) {_BACK}
  jacobian = f32[512,16,3] dot(mul, w1) contracts=2,1 {_BACK}
  result = f32[512,16,3] multiply(jacobian, jacobian) {_REST}
"""
# The other way round: 32 inputs, of which each gets a tangent, and 2 outputs.
FORWARDS = f"""
main:
  x = f32[512,32] parameter(0)
  w1 = f32[32,64] parameter(1)
  w2 = f32[64,2] parameter(2)
  rows = s32[32,32] iota() dims=0
  columns = s32[32,32] iota() dims=1
  eye = pred[32,32] compare(rows, columns) direction=EQ op_name=jit(f)/vmap()/eq
  ones = f32[32,32] convert(eye) op_name=jit(f)/vmap()/convert_element_type
  h = f32[512,64] dot(x, w1) contracts=1,0 {_FORTH}
  seeds = f32[32,64] dot(ones, w1) contracts=1,0 {_FORTH}
  slope = f32[512,32,64] broadcast(h) dims=0,2 {_FORTH}
  each = f32[512,32,64] broadcast(seeds) dims=1,2 {_FORTH}
  mul = f32[512,32,64] multiply(slope, each) {_FORTH}
  jacobian = f32[512,32,2] dot(mul, w2) contracts=2,0 {_FORTH}
  result = f32[512,32,2] multiply(jacobian, jacobian) {_REST}
"""
RESULT = f"result = f32[512,16,3] multiply(jacobian, jacobian) {_REST}"


def reading(*slices: str, text: str = BACKWARDS) -> str:
    """The program that reads only these parts of the derivatives."""
    lines = [
        f"part.{place} = f32[1] slice(jacobian) slices={each} {_REST}" for place, each in enumerate(slices)
    ]
    names = ", ".join(f"part.{place}" for place in range(len(slices)))
    added = f"result = f32[1] add({names}) {_REST}"
    assert RESULT in text
    return text.replace(RESULT, "\n  ".join([*lines, added]))


def code(text: str = BACKWARDS) -> bytes:
    """The program as profiles carry it."""
    return program(text)
