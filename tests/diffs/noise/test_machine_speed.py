"""What tells the speed of the device in programs whose kernels all have one op, and in another number format."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.diffs.data.samples import Samples, conform_table
from stepscope.diffs.explain.call_counts import compare_calls
from stepscope.diffs.noise.judge import Ground
from stepscope.diffs.noise.machine_speed import DEVICE, Speeds, estimate_speeds
from tests.builders.jobs.rank_samples import rank_samples

GEMM = "gemm"


def program(gemm: float, others: float = 1.0, *, kernels: int = 12, precision: str = "bf16") -> Samples:
    """A compiled program: a product that takes most of the time, and small kernels; all launched by one graph."""
    ops = {f"fusion_{place}": ("[[64]]", "8x1x1", 50_000.0 * others) for place in range(kernels)}
    ops[GEMM] = ("[[64]]", "132x1x1", 400_000.0 * gemm)
    found = rank_samples(ops, steps=6)
    product = found.kernels.filter(pl.col("op") == GEMM).with_columns(precision=pl.lit(precision))
    return replace(
        found,
        kernels=found.kernels.with_columns(op=pl.lit("graph")),
        products=conform_table("products", product),
    )


def of_device(found: Speeds) -> float | None:
    return next((each.ratio for each in found.changes if each.what == DEVICE), None)


def test_one_kernel_of_a_graph_is_not_its_speed() -> None:
    assert of_device(estimate_speeds(program(1), program(0.5))) == pytest.approx(1, abs=0.01)
    assert of_device(estimate_speeds(program(1), program(1.3, 1.3))) == pytest.approx(1.3, abs=0.01)


def test_few_common_kernels_do_not_speak_for_the_rest() -> None:
    renamed = program(2, 1.5)
    of_products = pl.col("name").str.contains(GEMM)
    other = renamed.kernels.with_columns(
        name=pl.when(of_products).then(pl.lit("gemm in fp32")).otherwise("name"),
        ns=pl.when(of_products).then(pl.col("ns") * 3).otherwise("ns"),
    )
    assert of_device(estimate_speeds(program(1), replace(renamed, kernels=other))) is None


@pytest.mark.parametrize(("precision", "expected"), [("bf16", 1.5), ("fp32", None)])
def test_the_same_shapes_of_larger_numbers_are_other_work(precision: str, expected: float | None) -> None:
    found = of_device(estimate_speeds(program(1), program(1.5, 1.5, precision=precision), same_work=False))
    assert found is None if expected is None else found == pytest.approx(expected, abs=0.01)


def test_workspaces_that_a_library_clears_are_no_difference() -> None:
    found = []
    for memsets in (1, 2):
        ops = {"memset": ("[[1]]", "1x1x1", 1_000.0), "aten::item": ("[[1]]", "1x1x1", 1_000.0)}
        side = rank_samples(ops, steps=4)
        counted = side.ops.with_columns(calls=pl.lit(memsets, dtype=pl.Int64))
        found.append(replace(side, ops=counted))
    ground = Ground(found[0], found[1], estimate_speeds(found[0], found[1]))
    assert [row.name for row in compare_calls(ground, (), "device")] == ["aten::item"]
