"""The comparison of our FLOPs and bytes with counters, without a device."""

from __future__ import annotations

from benchmarks.compute.compare import DRAM, L2, SASS, TENSOR, Work, compare, counted
from benchmarks.kernel_table.marker import BEGIN, END, NAME
from benchmarks.kernel_table.ncu import Counted


def marker(case: int, side: int) -> Counted:
    """A marker as `ncu` lists it."""
    return Counted(NAME, (case + 1, side, 1), (1, 1, 1))


def test_launches_between_markers_belong_to_their_case() -> None:
    product = Counted("gemm", (8, 1, 1), (128, 1, 1), {f"{TENSOR}bf16_dst_fp32": 100.0, DRAM: 10.0, L2: 30.0})
    plain = Counted("add", (8, 1, 1), (128, 1, 1), {f"{SASS}ffma_pred_on": 5.0, f"{SASS}fadd_pred_on": 1.0})
    launches = [product, marker(3, BEGIN), product, plain, marker(3, END), product]
    assert counted(launches) == {3: Work(111.0, 10.0, 30.0)}


def test_what_each_class_is_judged_by() -> None:
    names = {0: "matmul/square/bf16/large", 1: "copy/clone/bf16/small", 2: "embedding/table/bf16/large", 3: "norm/x/bf16/large"}  # fmt: skip
    mine = {0: (103.0, 5.0), 1: (0.0, 95.0), 2: (0.0, 40.0)}
    theirs = {0: Work(100, 9, 9), 1: Work(0, 1, 100), 2: Work(0, 90, 39)}
    rows = compare(names, mine, theirs)
    assert [(row.what, row.agrees) for row in rows] == [
        ("FLOPs", True),
        ("L2 bytes, at least", True),
        ("L2 bytes", True),
        ("L2 bytes, at least", False),  # more than was counted
        ("missing", False),
    ]
