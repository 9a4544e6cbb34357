"""How much of the peak was used."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.kernels.mfu import PRODUCTS, matrix_products, utilisation
from stepscope.trace.trace import Trace, TraceInfo
from tests.builders.tables import trace_of_rows

# On an H200, whose dense peaks are 989.4 TFLOP/s in bf16 and 67 in fp32.
H200 = {"id": 0, "name": "NVIDIA H200"}
EVENTS = [
    ("aten::convolution", "op", 0, 0, 1000),  # has the formula
    ("aten::cudnn_convolution", "op", 0, 100, 800),  # launches
    ("aten::mm", "op", 0, 2000, 500),
    ("convolve", "kernel", 1, 500, 4000),
    ("pad", "kernel", 1, 5000, 100),
    ("nvjet", "kernel", 1, 6000, 3000),
    ("stray", "kernel", 1, 10_000, 50),
]


def traced(devices: list[dict[str, object]]) -> Trace:
    """A convolution of two kernels, a product, and a kernel that no op launched."""
    ops = pl.DataFrame({"event": [0, 1, 2]})
    kernels = pl.DataFrame({"event": [3, 4, 5, 6], "op": [1, 1, 2, None]})
    info = TraceInfo(framework="pytorch", devices=devices)
    return trace_of_rows(EVENTS, info, ops=ops, kernels=kernels)


def products(trace: Trace) -> pl.DataFrame:
    """With FLOPs known for the convolution and the product."""
    calls = pl.DataFrame({"event": [0, 1, 2], "flops": [10**9, None, 2 * 10**9]}).cast({"event": pl.UInt32})
    kernels = trace.events.filter(pl.col("kind") == "kernel").select(
        "dur_ns",
        event="id",
        device=pl.lit(0, dtype=pl.Int32),
        precision=pl.Series(["bf16", "fp32", "bf16", "bf16"]),
        eligible=pl.Series([True, True, True, True]),
    )
    return matrix_products(trace, calls, kernels)


def test_kernels_belong_to_the_op_with_the_formula() -> None:
    rows = products(traced([H200])).rows()
    assert rows == [(0, "bf16", 10**9, 4100), (0, "bf16", 2 * 10**9, 3000), (0, "bf16", None, 50)]


def test_share_of_the_peak() -> None:
    trace = traced([H200])
    found = utilisation(trace, products(trace), 10_000)
    assert found is not None
    assert found.best == found.own_precision == pytest.approx(3e9 / 989.4e12 / 10_000e-9)


def test_fp32_near_its_peak_is_far_from_the_best() -> None:
    """The best peak is that of 16 bits."""
    trace = traced([H200])
    rows = pl.DataFrame([(0, "fp32", 10**9, 100)], schema=PRODUCTS, orient="row")
    found = utilisation(trace, rows, 20_000)
    assert found is not None
    assert found.own_precision == pytest.approx(1e9 / 67e12 / 20_000e-9)
    assert found.best == pytest.approx(1e9 / 989.4e12 / 20_000e-9)


def test_nothing_is_claimed_of_an_unknown_device() -> None:
    trace = traced([{"id": 0, "name": "Something Else"}])
    assert utilisation(trace, products(trace), 10_000) is None


def test_nothing_is_claimed_where_too_little_is_known() -> None:
    trace = traced([H200])
    rows = [(0, "bf16", 10**9, 80), (0, "bf16", None, 20)]
    assert utilisation(trace, pl.DataFrame(rows, schema=PRODUCTS, orient="row"), 1000) is None
    assert utilisation(trace, pl.DataFrame(schema=PRODUCTS), 1000) is None
