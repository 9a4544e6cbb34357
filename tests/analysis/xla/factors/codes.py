"""Compiled programs that make a covariance matrix, decompose it by LU, and use its inverse: the parts of their code, as text."""

from __future__ import annotations

ROWS = 512
SQUARE = f"f32[{ROWS},{ROWS}]"

# exp(-|x_i - x_j|² / 2), as a fused kernel of products and squares: what is laid along rows is laid along columns as well.
EXPONENT = f"""\
  sq = f32[{ROWS}] parameter(0)
  zz = {SQUARE} parameter(1)
  rows = {SQUARE} broadcast(sq) dims=0
  columns = {SQUARE} broadcast(sq) dims=1
  both = {SQUARE} add(rows, columns)
  two = f32[] constant() value=2
  twos = {SQUARE} broadcast(two)
  twice = {SQUARE} multiply(zz, twos)
  distance = {SQUARE} subtract(both, twice)
  half = f32[] constant() value=-0.5
  halves = {SQUARE} broadcast(half)
  exponent = {SQUARE} multiply(distance, halves)
  near = {SQUARE} exponential(exponent)
"""
POSITIONS = f"""\
  down = s32[{ROWS},{ROWS}] iota() dims=0
  across = s32[{ROWS},{ROWS}] iota() dims=1
  mask = pred[{ROWS},{ROWS}] compare(down, across) direction=EQ
"""
DIAGONAL = f"""\
{POSITIONS}\
  noise = f32[] constant() value=0.1
  zero = f32[] constant() value=0
  noises = {SQUARE} broadcast(noise)
  zeros = {SQUARE} broadcast(zero)
  diagonal = {SQUARE} select(mask, noises, zeros)
"""
KERNEL = f"kernel:\n{EXPONENT}{DIAGONAL}  sum = {SQUARE} add(near, diagonal)\n"
MADE = f"""\
  x = f32[{ROWS},8] parameter(0)
  y = f32[{ROWS},1] parameter(1)
  b = f32[64,{ROWS}] parameter(2)
  x2 = f32[{ROWS},8] multiply(x, x)
  sq = f32[{ROWS}] reduce(x2) dims=1
  zz = {SQUARE} custom-call(x, x) target=__cublas$gemm
  k = {SQUARE} fusion(sq, zz) calls=kernel
"""
IDENTITY = f"""\
identity:
  order = s32[{ROWS}] parameter(0)
{POSITIONS}\
  ones = {SQUARE} convert(mask)
  turned = {SQUARE} gather(ones, order)
"""
LU = f"""\
  lu = ({SQUARE}, s32[{ROWS}], s32[]) custom-call(k) target=cusolver_getrf_ffi op_name=jit(run)/jit(inv)/lu
  info = s32[] get-tuple-element(lu) index=2
  pivots = s32[{ROWS}] get-tuple-element(lu) index=1
  raw = {SQUARE} get-tuple-element(lu) index=0
  factor = {SQUARE} fusion(raw, info) op_name=jit(run)/jit(inv)/lu
  order = s32[{ROWS}] custom-call(pivots) target=cu_lu_pivots_to_permutation
"""
INVERSE = f"""\
{LU}\
  eye = {SQUARE} fusion(order) calls=identity
  first = ({SQUARE}, s8[0]) custom-call(factor, eye) target=__cublas$triangularSolve op_name=jit(run)/jit(inv)/triangular_solve
  half = {SQUARE} get-tuple-element(first) index=0
  second = ({SQUARE}, s8[0]) custom-call(factor, half) target=__cublas$triangularSolve op_name=jit(run)/jit(inv)/triangular_solve
  inverse = {SQUARE} get-tuple-element(second) index=0
"""
PRODUCT = f"""\
  w = f32[64,{ROWS}] custom-call(b, inverse) target=__cublas$gemm op_name=jit(run)/dot_general
  out = (f32[64,{ROWS}]) tuple(w)
"""
# The variance of a posterior: what the inverse is multiplied by from one side multiplies the product from the other.
VARIANCE = f"""\
  w = f32[64,{ROWS}] custom-call(b, inverse) target=__cublas$gemm op_name=jit(run)/dot_general
  variance = f32[64] fusion(w, b) calls=squared
  mean = f32[64] fusion(w, y) calls=weighted
  out = (f32[64], f32[64]) tuple(variance, mean)
"""
SQUARED = f"""\
squared:
  w = f32[64,{ROWS}] parameter(0)
  b = f32[64,{ROWS}] parameter(1)
  each = f32[64,{ROWS}] multiply(w, b)
  variance = f32[64] reduce(each) dims=1
weighted:
  w = f32[64,{ROWS}] parameter(0)
  y = f32[{ROWS}] parameter(1)
  ys = f32[64,{ROWS}] broadcast(y) dims=1
  each = f32[64,{ROWS}] multiply(w, ys)
  mean = f32[64] reduce(each) dims=1
"""
SOLVED = f"""\
{LU}\
  right = f32[{ROWS},1] gather(y, order)
  first = f32[{ROWS},1] custom-call(factor, right) target=__cublas$triangularSolve op_name=jit(run)/jit(solve)/triangular_solve
  second = f32[{ROWS},1] custom-call(factor, first) target=__cublas$triangularSolve op_name=jit(run)/jit(solve)/triangular_solve
  out = (f32[{ROWS},1]) tuple(second)
"""


def code_of(rest: str = INVERSE + PRODUCT, made: str = MADE, kernel: str = KERNEL, more: str = "") -> str:
    """A program: how the matrix is made, what is done with it, and more fused kernels."""
    return f"{kernel}{IDENTITY}{more}main:\n{made}{rest}"
