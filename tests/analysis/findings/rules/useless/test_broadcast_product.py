"""All pairs of two sets of vectors by a broadcast: what a matrix product would do, and what it would not."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless.broadcast_product import RULE
from tests.analysis.findings.op_steps import Op, case
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

FLOATS = "float,float"
LAST = '["","[-1]","False",""]'


def distances(rows: int = 8192, codes: int = 1024, depth: int = 64, length: int = 200) -> list[Op]:
    whole = f"[{rows},{codes},{depth}]"
    sides = f"[[{rows},1,{depth}],[1,{codes},{depth}],[]]"
    return [
        Op("aten::sub", sides, "elementwise_kernel", length, dtypes=FLOATS, inputs='["","","1"]'),
        Op(
            "aten::pow",
            f"[{whole},[]]",
            "vectorized_elementwise_kernel",
            length,
            dtypes=FLOATS,
            inputs='["","2"]',
        ),
        Op("aten::sum", f"[{whole},[],[],[]]", "reduce_kernel", length, dtypes=FLOATS, inputs=LAST),
    ]


OTHER = Op("aten::exp", "[[8192,1024]]", "vectorized_elementwise_kernel", 100, dtypes=FLOATS)


def test_distances_of_all_pairs_are_first_and_own_their_kernels() -> None:
    """A product of 1.1 GFLOPs and up to seven passes over 34 MB are left of 600 µs, and 100 µs of another op."""
    found = apply_rules(case(*[[*distances(), OTHER]] * 3))
    first = found[0]
    assert first.code == "broadcast-product"
    assert first.evidence["broadcast_elements"] == 8192 * 1024 * 64
    assert first.evidence["pairs"] == 8192 * 1024
    assert first.share == pytest.approx(0.63, abs=0.04)  # and what follows them
    assert 2.5 < first.speedup.low < first.speedup.mid < first.speedup.high < 5
    assert "torch.addmm" in first.fix
    assert "unfused-elementwise" not in [each.code for each in found]


def test_the_gradient_goes_with_them() -> None:
    whole = "[8192,1024,64]"
    mul = Op("aten::mul", f"[{whole},{whole}]", "mul_kernel", 150, "autograd", dtypes=FLOATS)
    added = Op("aten::sum", f"[{whole},[],[],[]]", "sum_kernel", 150, "autograd", dtypes=FLOATS)
    node = Op("PowBackward0", track="autograd", inside=(mul, added))
    forward = distances(length=150)
    alone, both = (RULE.findings(case(*[ops] * 3)) for ops in (forward, [*forward, node]))
    assert both[0].share == pytest.approx(alone[0].share + 0.3, abs=0.05)
    assert both[0].speedup.mid > alone[0].speedup.mid


@pytest.mark.parametrize(
    "ops",
    [
        [*distances()[:1], Op("aten::abs", "[[8192,1024,64]]", "abs_kernel", 200), *distances()[2:]],
        distances(1024, 512, 32),
        distances(length=5),
        distances(length=40),
        distances(depth=4),
    ],
    ids=["another distance", "small", "little of the step", "as fast as the product", "points in space"],
)
def test_what_stays_as_it_is(ops: list[Op]) -> None:
    assert RULE.findings(case(*[ops] * 3)) == []


CODE = """
adds:
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  sum = f32[] add(x, y)
computes:
  first = f32[4800,128] parameter(0)
  second = f32[8192,128] parameter(1)
  a = f32[4800,8192,128] broadcast(first) dims=0,2
  b = f32[4800,8192,128] broadcast(second) dims=1,2
  d = f32[4800,8192,128] subtract(a, b)
  last = f32[4800,8192,128] {last}
  start = f32[] constant()
  added = f32[4800,8192] reduce(last, start) dims=2 calls=adds
main:
  p0 = f32[4800,128] parameter(0)
  p1 = f32[8192,128] parameter(1)
  input_reduce_fusion.1 = f32[4800,8192] fusion(p0, p1) calls=computes
"""


def found_in(last: str = "multiply(d, d)", length: int = 5600) -> dict[str, Finding]:
    """Findings of steps of 15 ms with a fused kernel of so many µs, and another kernel."""
    lines = []
    for step in range(3):
        at = 15_000 * step
        lines += [
            f"main  {at}  15000  ProfilerStep#{step}  annotation  -  -",
            f"main  {at + 2}  1  cudaLaunchKernel  runtime  input_reduce_fusion_1  -",
            f"stream 7  {at + 20}  {length}  input_reduce_fusion_1  kernel  -  jit_step",
            f"main  {at + 5}  1  cudaLaunchKernel  runtime  gemm  -",
            f"stream 7  {at + 20 + length}  9000  gemm  kernel  -  jit_step",
            f"main  {at + 10}  14980  cudaDeviceSynchronize  runtime  -  -",
        ]
    codes = {"jit_step": program(CODE.format(last=last))}
    return {each.code: each for each in apply_rules(case_of(program_trace(lines, **codes)))}


def test_a_fused_sum_over_a_broadcast() -> None:
    """As one of four in a recorded job of JAX: 5.6 ms, of which 0.4 ms were left."""
    found = found_in()
    assert next(iter(found)) == "broadcast-product"
    first = found["broadcast-product"]
    assert first.share == pytest.approx(0.38, abs=0.02)
    assert first.speedup.low < 15 / (15 - 5.2) < first.speedup.high
    assert first.speedup.high / first.speedup.low < 1.6
    assert "jnp.sum(b * b, -1)" in first.fix


def test_a_fused_sum_of_something_else() -> None:
    assert "broadcast-product" not in found_in("abs(d)")
    assert "broadcast-product" not in found_in(length=500)
