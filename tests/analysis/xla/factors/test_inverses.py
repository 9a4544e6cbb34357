"""Inverses in the code of compiled programs, and what is read of them."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.factors.inverses import Factored, factored_matrices
from stepscope.analysis.xla.hlo_module import Module
from tests.builders.factors import INVERSE, LU, MADE, PRODUCT, ROWS, SOLVED, SQUARE, code_of
from tests.builders.hlo import program

SUMMED = f"""\
summed:
  inverse = {SQUARE} parameter(0)
  y = f32[{ROWS}] parameter(1)
  ys = {SQUARE} broadcast(y) dims=1
  each = {SQUARE} multiply(inverse, ys)
  alpha = f32[{ROWS}] reduce(each) dims=1
"""
TRACED = f"""\
traced:
  inverse = {SQUARE} parameter(0)
  other = {SQUARE} parameter(1)
  each = {SQUARE} multiply(inverse, other)
  trace = f32[{ROWS}] reduce(each) dims=1
"""
DETERMINANT = f"""\
  diagonal = f32[{ROWS}] fusion(raw)
  turns = s32[] fusion(pivots)
"""


def found_in(code: str) -> list[Factored]:
    return factored_matrices(Module(program(code)))


def test_products_with_an_inverse() -> None:
    (found,) = found_in(code_of())
    assert (found.size, found.columns, found.is_definite, found.solves) == (ROWS, 64, True, False)
    assert found.lu == {"lu", "factor", "order"}
    assert found.solving == {"first", "second"}
    assert found.around == {"eye", "w"}


def test_a_vector_that_a_fused_kernel_multiplies_by_the_inverse_and_a_determinant() -> None:
    read = f"  alpha = f32[{ROWS}] fusion(inverse, y) calls=summed\n  out = (f32[{ROWS}]) tuple(alpha)\n"
    (found,) = found_in(code_of(INVERSE + DETERMINANT + read, more=SUMMED))
    assert found.columns == 1


def test_a_solve_for_right_sides() -> None:
    (found,) = found_in(code_of(SOLVED))
    assert found.solves and not found.columns and found.is_definite
    assert not found.solving and not found.around


@pytest.mark.parametrize(
    "rest",
    [
        INVERSE + f"  out = ({SQUARE}) tuple(inverse)\n",  # the result itself
        INVERSE + PRODUCT.replace("tuple(w)", "tuple(w, inverse)"),  # kept beside what it is used for
        INVERSE + f"  both = {SQUARE} custom-call(inverse, inverse) target=__cublas$gemm\n  out = ({SQUARE}) tuple(both)\n",
        INVERSE + f"  trace = f32[{ROWS}] fusion(inverse, k) calls=traced\n  out = (f32[{ROWS}]) tuple(trace)\n",
        INVERSE + f"  part = f32[{ROWS}] fusion(inverse)\n  out = (f32[{ROWS}]) tuple(part)\n",  # its diagonal, perhaps
        LU + f"  out = ({SQUARE}, s32[{ROWS}]) tuple(factor, pivots)\n",  # factored here, solved elsewhere
        INVERSE + f"  other = {SQUARE} fusion(raw, k)\n" + PRODUCT,  # the factor is read otherwise
    ],
)  # fmt: skip
def test_what_needs_the_whole_inverse_or_the_factors(rest: str) -> None:
    assert found_in(code_of(rest, more=TRACED)) == []


def test_matrices_that_are_many_or_small() -> None:
    assert found_in(code_of().replace(f"lu = ({SQUARE}", f"lu = (f32[4,{ROWS},{ROWS}]")) == []
    assert found_in(code_of().replace(str(ROWS), "64")) == []


def test_a_right_side_that_is_given_is_not_the_identity() -> None:
    """Its solution is what the program wants: nothing says that it multiplies by it."""
    given = MADE + f"  e = {SQUARE} parameter(3)\n"
    (found,) = found_in(
        code_of(
            made=given, rest=(INVERSE + PRODUCT).replace("fusion(order) calls=identity", "gather(e, order)")
        )
    )
    assert found.solves and not found.columns
