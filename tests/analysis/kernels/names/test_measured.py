"""Our labels against the hardware: kernels of real jobs on an H200, with the instructions that its tensor cores executed.

The table is made by `python -m benchmarks.kernel_table`. `tensor_instructions` leaves out packed half arithmetic, which the
tensor pipe of Hopper also executes. A label that says nothing counts as wrong where all kernels are asked for.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.analysis.kernels.names.label import Compiled
from stepscope.analysis.kernels.names.rules import Context, Label, label

TABLE = Path(__file__).parents[3] / "fixtures" / "kernels" / "h200.csv"
Row = dict[str, str]
# Not looked at while the rules were written; the others may have been. By the first word of the case.
HELD_OUT = ("attention", "complex", "conv", "fp8", "grouped", "int8", "jax", "job", "lstm", "sparse")
KINDS = (
    "mm/fp32", "mm/tf32", "mm/bf16", "mm/fp16", "mm/fp64", "fp8/", "int8/", "conv/fp32", "conv/tf32", "conv/bf16", "conv/fp16",
    "attention/flash", "attention/efficient", "attention/cudnn", "triton/", "inductor/", "elementwise/", "optimizer/",
    "job/", "jax/",
)  # fmt: skip


def rows() -> list[Row]:
    """The committed table."""
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def labelled(row: Row) -> Label:
    """Our label, with what a profile of the same job knows."""
    framework = {"torch": "pytorch"}.get(row["framework"], row["framework"])
    return label(
        row["name"], Context(row["op"] or None, row["dtypes"] or None, framework, (9, 0), compiled(row))
    )


def compiled(row: Row) -> Compiled | None:
    """`product fp32 perhaps rounded`."""
    words = row["module"].split()
    if not words:
        return None
    return Compiled(words[1] if len(words) > 1 else None, words[0] == "product", "rounded" not in words)


def used(row: Row) -> bool:
    """Whether the tensor cores did anything."""
    return float(row["tensor_instructions"]) > 0


def agreement(wanted: Callable[[Row], bool]) -> float:
    """The share of kernels whose label says what the hardware says."""
    judged = [labelled(row).tensor_cores is used(row) for row in rows() if wanted(row)]
    return sum(judged) / len(judged)


def family(row: Row) -> str:
    """The first word of the case."""
    return row["case"].split("/")[0]


def test_the_table_is_wide_enough() -> None:
    """Many kernels of every kind, with and without tensor cores."""
    table = rows()
    assert len({row["name"] for row in table}) >= 300
    assert sum(used(row) for row in table) >= 100
    for kind in KINDS:
        assert any(row["case"].startswith(kind) for row in table), kind


def test_tensor_cores() -> None:
    """Right on 98 % of all kernels; and what is said is never wrong."""
    assert agreement(lambda _: True) >= 0.98
    assert agreement(lambda row: labelled(row).tensor_cores is not None) == 1.0


@pytest.mark.parametrize("held_out", [True, False])
def test_tensor_cores_by_families(held_out: bool) -> None:
    """Among families that were held out as among the others, triton by hand aside, whose names tell nothing."""
    told = [f for f in {family(row) for row in rows()} if f != "triton" and (f in HELD_OUT) is held_out]
    assert agreement(lambda row: family(row) in told) >= 0.98


def test_formats() -> None:
    """Where the hardware's counters tell what the tensor cores read, the label says the same."""
    counted = [row for row in rows() if row["tensor_formats"]]
    assert len(counted) >= 30
    assert {row["tensor_formats"] for row in counted} >= {"bf16", "fp16", "fp64", "fp8", "int8", "tf32"}
    for row in counted:
        assert labelled(row).precision == row["tensor_formats"], row["name"]


def test_formats_by_construction() -> None:
    """Each job's products were asked for in one format: tensor-core kernels have it, or tf32 for fp32, or say nothing."""
    for row in rows():
        if used(row) and family(row) != "job":
            allowed = {row["case_precision"], "unknown"} | (
                {"tf32"} if row["case_precision"] == "fp32" else set()
            )
            assert labelled(row).precision in allowed, row["name"]


def test_half_arithmetic_is_no_tensor_core_use() -> None:
    """The trap of the counter: an fp32 kernel sets registers to zero with the tensor pipe."""
    plain = [row for row in rows() if "_f32f32_f32f32_f32_" in row["name"]]
    assert plain
    assert not any(used(row) for row in plain)
