"""Copies into another order of dimensions are changes of layout; other copies are not."""

from __future__ import annotations

import pytest

from stepscope.analysis.compute.account import ComputeAccount
from tests.analysis.compute.traces import by_reason, computed

HEADER = """
    track     start   dur  name              kind        launches  shapes  dtypes  strides
    main          0  1000  ProfilerStep#0    annotation  -         -       -       -
"""
SIDE = 8000
SQUARE = f"[[{SIDE},{SIDE}],[{SIDE},{SIDE}],[]]"
AS_IT_IS, TURNED = f"[[{SIDE},1],[{SIDE},1],[]]", f"[[{SIDE},1],[1,{SIDE}],[]]"


def op(at: int, name: str, shapes: str, strides: str, outer: str = "") -> list[str]:
    """An op that launches one kernel of 200 µs, inside another one where that is named."""
    kernel = f"void at::native::elementwise_kernel<{at}>"
    around = [f"main  {at}  9  {outer}  op  -  -  -  -"] if outer else []
    return [
        *around,
        f"main  {at}  8  {name}  op  -  {shapes}  float,float,Scalar  {strides}",
        f"main  {at + 1}  5  cudaLaunchKernel  runtime  {kernel}  -  -  -",
        f"stream 7  {20 * at}  200  {kernel}  kernel  -  -  -  -",
    ]


def account(*ops: list[str]) -> ComputeAccount:
    """Of one step with these ops."""
    return computed(HEADER + "\n".join(row for rows in ops for row in rows))


def test_all_time_of_a_transposing_copy_is_lost_to_layout() -> None:
    found = account(op(10, "aten::copy_", SQUARE, TURNED))
    assert found.kernels["class"].to_list() == ["layout"]
    assert found.kernels["bytes"].to_list() == [2 * 4 * SIDE**2]
    assert by_reason(found) == {"layout": 200_000}


@pytest.mark.parametrize(
    ("shapes", "strides", "expected"),
    [
        (SQUARE, TURNED, "layout"),
        ("[[8,64,56,56],[8,64,56,56],[]]", "[[200704,1,3584,64],[200704,3136,56,1],[]]", "layout"),  # NCHW to NHWC
        ("[[8,16,512,64],[8,16,512,64],[]]", "[[524288,32768,64,1],[524288,64,1024,1],[]]", "layout"),  # heads
        (SQUARE, AS_IT_IS, "copy"),
        ("[[512,512],[512,512],[]]", "[[512,1],[4096,1],[]]", "copy"),  # a part of a larger tensor
        ("[[512,512],[512,512],[]]", "[[1,512],[1,512],[]]", "copy"),  # both are transposed
        ("[[1,512],[1,512],[]]", "[[512,1],[1,1],[]]", "copy"),  # a dimension of length one has no order
        ("[[512,512],[512,512],[]]", "[[512,1],[0,1],[]]", "copy"),  # rows that are repeated
        ("[[512,512],[512],[]]", "[[512,1],[1],[]]", "copy"),  # broadcast
        ("[[512,512],[512,512],[]]", "-", "copy"),  # recorded without strides
        ("[[512,512],[512,512],[]]", "[[512,1]]", "copy"),
        ("[[512,512],[512,512],[]]", "[[512,1],[1,51", "copy"),
    ],
)  # fmt: skip
def test_the_order_of_strides_decides(shapes: str, strides: str, expected: str) -> None:
    assert account(op(10, "aten::copy_", shapes, strides)).kernels["class"].to_list() == [expected]


def test_a_change_of_layout_does_not_end_a_chain() -> None:
    """The same chain as with a plain copy between two kernels."""
    chains = []
    for strides in (AS_IT_IS, TURNED):
        ends = [op(at, "aten::relu", f"[[{SIDE},{SIDE}]]", "-") for at in (10, 30)]
        found = account(ends[0], op(20, "aten::copy_", SQUARE, strides), ends[1])
        chains.append(found.chains.rows())
        assert found.chains["kernels"].to_list() == [3]
    assert chains[0] == chains[1]


def test_copies_of_the_optimizer_stay_with_it() -> None:
    rows = op(10, "aten::copy_", SQUARE, TURNED, "Optimizer.step#AdamW.step")
    assert account(rows).kernels["class"].to_list() == ["optimizer"]


def test_only_the_op_that_copies_has_a_target_and_a_source() -> None:
    """The strides of other ops are those of their inputs, in any order."""
    assert account(op(10, "aten::add", SQUARE, TURNED)).kernels["class"].to_list() == ["elementwise"]
    assert account(op(10, "aten::clone", SQUARE, TURNED)).kernels["class"].to_list() == ["copy"]
