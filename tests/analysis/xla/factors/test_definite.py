"""Matrices that the code of a program shows to be symmetric and positive definite, and such that only look like it."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.factors.inverses import factored_matrices
from stepscope.analysis.xla.hlo_module import Module
from tests.analysis.xla.factors.codes import DIAGONAL, KERNEL, MADE, ROWS, SQUARE, code_of
from tests.builders.hlo import program

# A joined product, of which XLA cuts out the part that belongs to the matrix.
JOINED = MADE.replace(
    f"  zz = {SQUARE} custom-call(x, x) target=__cublas$gemm\n",
    f"""\
  other = f32[64,8] parameter(3)
  joined = f32[{ROWS + 64},8] concatenate(x, other) dims=0
  products = f32[{ROWS + 64},{ROWS}] custom-call(joined, x) target=__cublas$gemm
  zz = {SQUARE} slice(products) slices=0:{ROWS},0:{ROWS}
""",
)
# amp * (1 + r) * exp(-r), as of a Matérn kernel.
MATERN = KERNEL.replace(
    f"  exponent = {SQUARE} multiply(distance, halves)\n  near = {SQUARE} exponential(exponent)\n",
    f"""\
  r = {SQUARE} sqrt(distance)
  turned = {SQUARE} negate(r)
  e = {SQUARE} exponential(turned)
  one = f32[] constant() value=1
  ones = {SQUARE} broadcast(one)
  more = {SQUARE} add(ones, r)
  amp = f32[] parameter(2)
  amps = {SQUARE} broadcast(amp)
  scaled = {SQUARE} multiply(amps, more)
  near = {SQUARE} multiply(scaled, e)
""",
)
# |x_i - x_j|² without a product.
BETWEEN = f"""\
kernel:
  z = f32[{ROWS},8] parameter(0)
  a = f32[{ROWS},{ROWS},8] broadcast(z) dims=0,2
  b = f32[{ROWS},{ROWS},8] broadcast(z) dims=1,2
  between = f32[{ROWS},{ROWS},8] subtract(a, b)
  squares = f32[{ROWS},{ROWS},8] multiply(between, between)
  distance = {SQUARE} reduce(squares) dims=2
  turned = {SQUARE} negate(distance)
  near = {SQUARE} exponential(turned)
{DIAGONAL}\
  sum = {SQUARE} add(near, diagonal)
"""
# 2 z zᵀ, where a kernel computes 2z and another one z.
DOUBLED = MADE.replace(
    f"  zz = {SQUARE} custom-call(x, x) target=__cublas$gemm\n",
    f"""\
  l = f32[8] parameter(3)
  two = f32[] constant() value=2
  twos = f32[{ROWS},8] broadcast(two)
  l0 = f32[{ROWS},8] broadcast(l) dims=1
  z0 = f32[{ROWS},8] multiply(x, l0)
  doubled = f32[{ROWS},8] multiply(z0, twos)
  l1 = f32[{ROWS},8] broadcast(l) dims=1
  z1 = f32[{ROWS},8] multiply(x, l1)
  zz = {SQUARE} custom-call(doubled, z1) target=__cublas$gemm
""",
)
# A product with its own transpose: of square arrays the contracted axes tell.
SCALED = f"""\
kernel:
  sq = f32[{ROWS}] parameter(0)
  zz = {SQUARE} parameter(1)
  n = f32[] constant() value=0.01
  ns = {SQUARE} broadcast(n)
  near = {SQUARE} multiply(zz, ns)
{DIAGONAL}\
  sum = {SQUARE} add(near, diagonal)
"""
SQUARES = MADE.replace(f"f32[{ROWS},8]", SQUARE).replace(
    "custom-call(x, x) target=__cublas$gemm", "dot(x, x) contracts={axes}"
)


def is_definite(made: str = MADE, kernel: str = KERNEL) -> bool:
    (found,) = factored_matrices(Module(program(code_of(made=made, kernel=kernel))))
    return found.is_definite


@pytest.mark.parametrize(
    ("made", "kernel"),
    [
        (MADE, KERNEL),
        (JOINED, KERNEL),
        (MADE, MATERN),
        (DOUBLED, KERNEL),
        (MADE.replace("fusion(sq, zz)", "fusion(x, zz)"), BETWEEN),
        (MADE, SCALED),
        (SQUARES.format(axes="0,0"), SCALED),
        (SQUARES.format(axes="1,1"), SCALED),
        # A library's product that adds its third operand.
        (MADE.replace("kernel\n", "noise\n").replace("fusion(sq, zz)", "custom-call(x, x, d) target=__cublas$gemm")
             .replace("  k =", f"  d = {SQUARE} fusion() calls=noise\n  k ="), f"noise:\n{DIAGONAL}"),
    ],
)  # fmt: skip
def test_kernels_and_products_with_a_diagonal(made: str, kernel: str) -> None:
    assert is_definite(made, kernel)


@pytest.mark.parametrize(
    ("made", "kernel"),
    [
        (MADE, KERNEL.replace("add(near, diagonal)", "add(near, halves)")),  # no diagonal
        (MADE, KERNEL.replace("add(near, diagonal)", "subtract(near, diagonal)")),
        (MADE, KERNEL.replace("add(near, diagonal)", "subtract(diagonal, near)")),
        (MADE, KERNEL.replace("value=0.1", "value=-0.1")),
        (MADE, KERNEL.replace("value=-0.5", "value=0.5")),  # grows with the distance
        (MADE, KERNEL.replace("add(rows, columns)", "add(rows, rows)")),  # not symmetric
        (MADE, KERNEL.replace("direction=EQ", "direction=GE")),  # a triangle
        (MADE, KERNEL.replace("near = ", "near0 = ").replace("exponential(exponent)", "sine(exponent)").replace("add(near", "add(near0")),
        (MADE.replace("custom-call(x, x)", "custom-call(x, x2)"), KERNEL),
        (MADE.replace("(x, x) target=__cublas$gemm", "(x, x2) target=__cublas$gemm"), SCALED),
        (JOINED.replace("concatenate(x, other)", "concatenate(other, x)"), KERNEL),  # the part of the others
        (SQUARES.format(axes="1,0"), SCALED),  # x @ x
        (MADE, SCALED.replace("value=0.01", "value=-0.01")),
        (DOUBLED.replace("value=2", "value=-2"), SCALED),
        (DOUBLED.replace("multiply(x, l1)", "add(x, l1)"), KERNEL),
        (DOUBLED.replace("multiply(x, l1)", "multiply(x2, l1)"), KERNEL),
        (MADE, BETWEEN.replace("z = f32[512,8] parameter(0)", "z = f32[512,8] parameter(0)").replace("dims=1,2", "dims=0,2")),
        # What the program is given may be anything.
        (MADE.replace(f"k = {SQUARE} fusion(sq, zz) calls=kernel", f"k = {SQUARE} parameter(4)"), KERNEL),
    ],
)  # fmt: skip
def test_what_may_be_indefinite(made: str, kernel: str) -> None:
    assert not is_definite(made, kernel)
