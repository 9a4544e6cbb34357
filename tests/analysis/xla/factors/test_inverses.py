"""Inverses in the code of compiled programs, and what is read of them."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.factors.inverses import Factored, factored_matrices
from stepscope.analysis.xla.hlo_module import Module
from tests.analysis.xla.factors.codes import (
    INVERSE,
    LU,
    MADE,
    PRODUCT,
    ROWS,
    SOLVED,
    SQUARE,
    SQUARED,
    VARIANCE,
    code_of,
)
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
    assert not found.is_squared  # the product is the result


# What the product is multiplied by from the other side, computed anew in each kernel that reads it.
AGAIN = """\
  c = f32[64,512] exponential(b)
"""
NEAR = "near:\n  b = f32[64,512] parameter(0)\n  c = f32[64,512] exponential(b)\n"


@pytest.mark.parametrize(
    ("rest", "more", "is_squared"),
    [
        (VARIANCE, SQUARED, True),
        (
            VARIANCE.replace("custom-call(b,", "custom-call(c,").replace("  w =", f"  c = f32[64,{ROWS}] fusion(b) calls=near\n  w ="),
            NEAR + SQUARED.replace("  each = f32[64,512] multiply(w, b)", AGAIN + "  each = f32[64,512] multiply(w, c)"),
            True,
        ),
        (VARIANCE, SQUARED.replace("multiply(w, b)", "add(w, b)"), False),
        (
            VARIANCE,
            SQUARED.replace("  each = f32[64,512] multiply(w, b)", AGAIN + "  each = f32[64,512] multiply(w, c)"),
            False,
        ),
        (VARIANCE.replace("tuple(variance, mean)", "tuple(variance, w)"), SQUARED, False),
    ],
)  # fmt: skip
def test_quadratic_forms(rest: str, more: str, is_squared: bool) -> None:
    (found,) = found_in(code_of(INVERSE + rest, more=more))
    assert (found.columns, found.is_squared) == (64, is_squared)


def test_a_vector_that_a_fused_kernel_multiplies_by_the_inverse_and_a_determinant() -> None:
    read = f"  alpha = f32[{ROWS}] fusion(inverse, y) calls=summed\n  out = (f32[{ROWS}]) tuple(alpha)\n"
    (found,) = found_in(code_of(INVERSE + DETERMINANT + read, more=SUMMED))
    assert found.columns == 1


def test_a_product_that_is_split_into_sums() -> None:
    """Of four parts of the contracted axis: the product has one column all the same."""
    inside = f"dotted:\n  i = {SQUARE} parameter(0)\n  y = f32[{ROWS},1] parameter(1)\n  d = f32[4,{ROWS},1] dot(i, y)\n"
    read = (
        f"  parts = f32[4,{ROWS},1] fusion(inverse, y) calls=dotted\n  out = (f32[4,{ROWS},1]) tuple(parts)\n"
    )
    (found,) = found_in(code_of(INVERSE + read, more=inside))
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
