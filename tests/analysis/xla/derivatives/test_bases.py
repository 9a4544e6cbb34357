"""Derivatives that are carried for all vectors of a basis, in the code of programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.derivatives.bases import Basis, wide_bases
from stepscope.analysis.xla.hlo_module import Module
from tests.analysis.xla.derivatives.jacobians import BACKWARDS, FORWARDS, code, reading

COLUMN, ROW = "0:512,0:16,{0}:{1}", "0:512,{0}:{1},0:3"


def found(text: str) -> list[Basis]:
    return wide_bases(Module(code(text)))


def test_gradients_of_16_outputs_where_3_inputs_have_a_tangent_each() -> None:
    (one,) = found(BACKWARDS)
    assert (one.size, one.needed, one.backwards, one.chosen) == (16, 3, True, False)
    assert one.carried["jacobian"] == 1.0
    assert one.carried["mul"] == 1.0
    assert one.carried["slope"] == pytest.approx(16 / 17)
    assert "h" not in one.carried


def test_tangents_of_32_inputs_where_2_outputs_have_a_gradient_each() -> None:
    """The function itself is computed inside of the same transformations, and is no part of it."""
    (one,) = found(FORWARDS)
    assert (one.size, one.needed, one.backwards, one.chosen) == (32, 2, False, False)
    assert "h" not in one.carried


@pytest.mark.parametrize(
    ("slices", "needed", "chosen"),
    [
        ([ROW.format(0, 1)], 1, True),
        ([ROW.format(0, 1), ROW.format(5, 6)], 2, True),
        ([COLUMN.format(0, 1)], 1, False),
        ([COLUMN.format(0, 1), COLUMN.format(2, 3)], 2, False),
        ([COLUMN.format(0, 2), COLUMN.format(1, 3)], 3, False),
        (["0:512,4:5,2:3"], 1, True),
    ],
)
def test_what_is_read_of_the_derivatives(slices: list[str], needed: int, chosen: bool) -> None:
    (one,) = found(reading(*slices))
    assert (one.needed, one.chosen) == (needed, chosen)


@pytest.mark.parametrize(
    "text",
    [
        BACKWARDS.replace("512,16,3", "512,16,24").replace("f32[3,64]", "f32[24,64]"),
        BACKWARDS.replace("vmap(vmap(transpose(jvp())))", "vmap(transpose(jvp()))"),
        BACKWARDS.replace("vmap(vmap(transpose(jvp())))", "vmap(vmap())"),
        BACKWARDS.replace("direction=EQ", "direction=LT"),
        BACKWARDS.replace("dims=1\n", "dims=0\n"),
        BACKWARDS.replace("f32[3,64]", "f32[5,64]"),
    ],
    ids=["more-inputs", "gradients-of-samples", "no-derivative", "a-mask", "ones", "samples-unknown"],
)
def test_what_is_no_wide_basis(text: str) -> None:
    assert not found(text)


def test_an_array_of_the_function_with_as_many_numbers_is_not_taken_for_one_of_the_basis() -> None:
    """What is computed before has 1024 columns, as many numbers as 16 times 64."""
    wide = "wide = f32[512,1024] dot(x, w1) contracts=1,0 op_name=jit(f)/vmap(jvp())/dot_general\n  seeds ="
    assert not found(BACKWARDS.replace("seeds =", wide))


LOOP = """
turn:
  state = (f32[512,3], f32[3,64], f32[64,16], pred[16,16]) parameter(0)
  x = f32[512,3] get-tuple-element(state) index=0
  w1 = f32[3,64] get-tuple-element(state) index=1
  w2 = f32[64,16] get-tuple-element(state) index=2
  eye = pred[16,16] get-tuple-element(state) index=3
{body}
  next = (f32[512,3], f32[3,64], f32[64,16], pred[16,16]) tuple(x, w1, w2, eye)
main:
  x = f32[512,3] parameter(0)
  w1 = f32[3,64] parameter(1)
  w2 = f32[64,16] parameter(2)
  rows = s32[16,16] iota() dims=0
  columns = s32[16,16] iota() dims=1
  eye = pred[16,16] compare(rows, columns) direction=EQ op_name=jit(f)/vmap()/eq
  first = (f32[512,3], f32[3,64], f32[64,16], pred[16,16]) tuple(x, w1, w2, eye)
  loop = (f32[512,3], f32[3,64], f32[64,16], pred[16,16]) while(first) calls=turn
"""


def test_a_loop_that_is_given_the_identity_matrix() -> None:
    """Other parts of the loop's state do not depend on it."""
    lines = BACKWARDS.splitlines()
    body = "\n".join(line for line in lines[lines.index(next(x for x in lines if " ones =" in x)) :])
    (one,) = found(LOOP.format(body=body))
    assert (one.size, one.needed) == (16, 3)
    assert set(one.carried) >= {"jacobian", "mul"} and "h" not in one.carried
