"""Sums over broadcasts in the fused kernels of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.broadcasts import AllPairs, broadcast_sums
from stepscope.analysis.xla.hlo_module import Module
from tests.builders.hlo import program

# As XLA fuses jnp.argmin(jnp.sum(jnp.square(z[:, None] - codes[None]), -1), -1).
CODE = """
adds:
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  sum = f32[] {by}(x, y)
computes:
  z = bf16[8,600,128] parameter(0)
  rows = bf16[4800,128] bitcast(z)
  first = f32[4800,128] convert(rows)
  codes = f32[4,8192,128] parameter(1)
  level = f32[1,8192,128] slice(codes) slices=0:1,0:8192,0:128
  second = f32[8192,128] bitcast(level)
  weights = f32[4800,8192] parameter(2)
  a = f32[4800,8192,128] broadcast(first) dims=0,2
  b = f32[4800,8192,128] broadcast(second) dims=1,2
  w = f32[4800,8192,128] broadcast(weights) dims=0,1
{lines}
  start = f32[] constant()
  added = {result} reduce(last, start) dims={over} calls=adds
  positions = s32[4800,8192] iota()
main:
  p0 = bf16[8,600,128] parameter(0)
  p1 = f32[4,8192,128] parameter(1)
  p2 = f32[4800,8192] parameter(2)
  fusion.1 = {result} fusion(p0, p1, p2) calls=computes
"""
ALL = "f32[4800,8192,128]"
SQUARED = ("d = {all} subtract(a, b)", "last = {all} multiply(d, d)")


def sums(
    *lines: str, over: str = "2", result: str = "f32[4800,8192]", by: str = "add"
) -> dict[str, AllPairs]:
    body = "\n".join(f"  {line}" for line in lines).format(all=ALL)
    return broadcast_sums(Module(program(CODE.format(lines=body, over=over, result=result, by=by))))


@pytest.mark.parametrize(
    "lines",
    [
        SQUARED,
        ("last = {all} multiply(a, b)",),
        ("d = {all} subtract(b, a)", "n = {all} negate(d)", "last = {all} multiply(n, d)"),
        ("d = {all} add(a, b)", "s = {all} multiply(d, d)", "last = {all} multiply(s, w)"),
        ("s = {all} multiply(a, b)", "last = {all} divide(s, w)"),
    ],
    ids=["distances", "products", "negated", "with weights", "by weights"],
)
def test_sums_that_are_a_matrix_product(lines: tuple[str, ...]) -> None:
    [(name, found)] = sums(*lines).items()
    assert name == "fusion.1"
    assert found == AllPairs(4800 * 8192 * 128, 4800 * 8192, "fp32", 1)


def test_the_gradient_of_a_distance_is_one_as_well() -> None:
    lines = ("d = {all} subtract(a, b)", "last = {all} multiply(w, d)")
    [found] = sums(*lines, over="1", result="f32[4800,128]").values()
    assert (found.pairs, found.products) == (4800 * 128, 1)


@pytest.mark.parametrize(
    ("lines", "other"),
    [
        (("d = {all} subtract(a, b)", "last = {all} abs(d)"), {}),
        (("d = {all} subtract(a, b)", "e = {all} tanh(d)", "last = {all} multiply(e, a)"), {}),
        (("last = {all} subtract(a, b)",), {}),
        (SQUARED, {"by": "maximum"}),
        (("last = {all} multiply(a, b)",), {"over": "0", "result": "f32[8192,128]"}),
        ((*SQUARED, "exp = {all} exponential(d)"), {}),
        ((*SQUARED, "most = f32[4800,8192] reduce(d, weights) dims=2 calls=adds"), {}),
        (("last = {all} multiply(a, a)",), {}),
    ],
    ids=[
        "absolute values",
        "a function",
        "a sum",
        "a maximum",
        "one side",
        "another result",
        "another sum",
        "one set",
    ],
)
def test_sums_that_are_none(lines: tuple[str, ...], other: dict[str, str]) -> None:
    assert sums(*lines, **other) == {}


def test_axes_are_followed_through_other_shapes() -> None:
    """One side is broadcast first and reshaped then: it changes along the axis that it had."""
    lines = (
        "u = f32[80,60,8192,128] broadcast(second) dims=2,3",
        "v = {all} reshape(u)",
        "d = {all} subtract(a, v)",
        "last = {all} multiply(d, d)",
    )
    assert [found.pairs for found in sums(*lines).values()] == [4800 * 8192]
    swapped = (
        "u = f32[8192,4800,128] broadcast(second) dims=0,2",
        "v = {all} transpose(u) dims=1,0,2",
        "last = {all} multiply(a, v)",
    )
    assert [found.pairs for found in sums(*swapped).values()] == [4800 * 8192]


def test_damaged_programs() -> None:
    assert sums("d = {all} broadcast(first) dims=7,9", "last = {all} multiply(d, b)") == {}
    assert sums("last = {all} multiply(a, b)", over="9") == {}
