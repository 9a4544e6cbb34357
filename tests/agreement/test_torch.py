"""Ops against torch's own `key_averages()` of the same run, recorded by benchmarks/record/key_averages.py."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

import stepscope
from stepscope.analysis.ops.calls import op_calls, ops_table

RECORDED = Path(__file__).parent.parent / "fixtures" / "agreement" / "torch"
RUNS = [
    path.name.removesuffix(".key_averages.json.gz")
    for path in sorted(RECORDED.glob("*.key_averages.json.gz"))
]
CLOSE = 0.01
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::conv2d"}


@cache
def calls(run: str) -> pl.DataFrame:
    """All calls of the recording, as torch counts them: in steps or not."""
    trace = stepscope.load(RECORDED / f"{run}.pt.trace.json.gz").traces[0]
    return op_calls(trace).with_columns(step=pl.lit(None, dtype=pl.Int32))


@cache
def ours(run: str) -> dict[str, dict[str, Any]]:
    """Our table, by name."""
    return {row["name"]: row for row in ops_table(calls(run)).to_dicts()}


@cache
def theirs(run: str, table: str = "all") -> list[dict[str, Any]]:
    """Torch's table of what ran on the host, without annotations and calls of the runtime, which are no ops."""
    found = msgspec.json.decode(gzip.decompress((RECORDED / f"{run}.key_averages.json.gz").read_bytes()))
    return [
        row
        for row in found[table]
        if row["device_type"] == "CPU" and "::" in row["key"] and not row["annotation"]
    ]


def test_there_is_something_to_compare() -> None:
    assert {run.split("_")[0] for run in RUNS} == {"cpu", "h200"}
    assert all(len(theirs(run)) > 60 for run in RUNS)


@pytest.mark.parametrize("run", RUNS)
def test_same_ops_and_calls(run: str) -> None:
    named = {name: row["calls"] for name, row in ours(run).items() if "::" in name}
    assert named == {row["key"]: row["calls"] for row in theirs(run)}


@pytest.mark.parametrize("run", RUNS)
def test_same_self_times(run: str) -> None:
    for row in theirs(run):
        mine = ours(run)[row["key"]]
        assert mine["host_self_ns"] / 1000 == pytest.approx(row["cpu_self_us"], rel=CLOSE), row["key"]
        assert mine["device_self_ns"] / 1000 == pytest.approx(row["device_self_us"], rel=CLOSE, abs=1e-6), (
            row["key"]
        )


@pytest.mark.parametrize("run", RUNS)
def test_same_totals_but_for_ops_inside_themselves(run: str) -> None:
    """Torch adds the total of `linear` under autocast to that of the `linear` around it; time counts once with us."""
    nested = (
        calls(run)
        .filter(~pl.col("outermost") & ~pl.col("repeated"))["name"]
        .cast(pl.String)
        .unique()
        .to_list()
    )
    assert len(nested) < 12
    for row in theirs(run):
        mine = ours(run)[row["key"]]
        for total, theirs_us in (("host_total_ns", "cpu_total_us"), ("device_total_ns", "device_total_us")):
            if row["key"] in nested:
                assert mine[total] / 1000 <= row[theirs_us] * (1 + CLOSE), row["key"]
            else:
                assert mine[total] / 1000 == pytest.approx(row[theirs_us], rel=CLOSE, abs=1e-6), row["key"]


@pytest.mark.parametrize("run", [run for run in RUNS if run.startswith("h200")])
def test_device_time_is_all_there(run: str) -> None:
    assert sum(row["device_self_us"] for row in theirs(run)) > 0
    mine = sum(row["device_self_ns"] for row in ours(run).values()) / 1000
    assert mine == pytest.approx(sum(row["device_self_us"] for row in theirs(run)), rel=CLOSE)


@pytest.mark.parametrize("run", RUNS)
def test_same_flops(run: str) -> None:
    """`with_flops` counts a convolution at aten::conv2d, we at the aten::convolution that every kind of them calls."""
    told = [row for row in theirs(run, "by_shape") if row["key"] in PRODUCTS and row["flops"]]
    by_shape = {
        (name, shapes): flops
        for name, shapes, flops in calls(run).select("name", "shapes", "flops").unique().iter_rows()
        if flops is not None
    }
    assert {row["key"] for row in told} >= (
        {"aten::conv2d", "aten::addmm"} if "conv" in run else PRODUCTS - {"aten::conv2d"}
    )
    for row in told:
        name = "aten::convolution" if row["key"] == "aten::conv2d" else row["key"]
        flops = [
            value for (key, shapes), value in by_shape.items() if key == name and _same(shapes, row["shapes"])
        ]
        assert flops and flops[0] == pytest.approx(row["flops"] / row["calls"], rel=1e-9), row["key"]


def _same(shapes: str, theirs: list[list[int]]) -> bool:
    """The first tensors have the same shapes; convolution has more arguments than conv2d."""
    mine = [shape for shape in msgspec.json.decode(shapes) if shape]
    return bool(mine) and mine[:2] == [shape for shape in theirs if shape][:2]
