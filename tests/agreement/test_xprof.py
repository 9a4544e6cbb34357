"""Kernels and ops against XProf on the same files, as benchmarks/record/xprof_stats.py keeps what it says."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

import stepscope
from stepscope.analysis.kernels.calls import kernel_calls, kernels_table
from stepscope.analysis.ops.calls import op_calls
from stepscope.trace.trace import Trace

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set"),
]
XPROF = Path(__file__).parent.parent / "fixtures" / "agreement" / "xprof.json"
TENSORFLOW = ("tensorflow/custom_loop", "tensorflow/keras_callback")
EXACT = 1e-6


@cache
def trace_of(profile: str) -> Trace:
    """The profile's only trace."""
    return stepscope.load(Path(CORPUS or ".") / profile).traces[0]


@cache
def theirs(profile: str, tool: str) -> list[list[Any]]:
    """Rows of XProf's table."""
    kept = msgspec.json.decode(XPROF.read_bytes())["profiles"]
    rows = [one["rows"] for one in kept if (one["profile"], one["tool"]) == (profile, tool)]
    assert len(rows) == 1
    return list(rows[0])


def test_kernel_stats() -> None:
    """Kernel by kernel, calls and total time; XProf has a row for each launch shape."""
    told: dict[str, tuple[int, float]] = {}
    for name, calls, total in theirs("h200/jax_gpu", "kernel_stats"):
        before = told.get(name, (0, 0.0))
        told[name] = (before[0] + int(calls), before[1] + total)
    rows = (
        kernels_table(kernel_calls(trace_of("h200/jax_gpu")))
        .group_by("name")
        .agg(pl.col("calls", "total_ns").sum())
    )
    mine = {name: (calls, total / 1000) for name, calls, total in rows.iter_rows()}
    assert mine.keys() == told.keys()
    for name, figures in told.items():
        assert mine[name] == pytest.approx(figures, rel=EXACT), name


@pytest.mark.parametrize("profile", TENSORFLOW)
def test_framework_op_stats(profile: str) -> None:
    """Op by op, calls, total and self time. XProf's rows of kind Dataset are the stages of our input pipeline."""
    told = {(kind, name): figures for kind, name, *figures in theirs(profile, "framework_op_stats")}
    ops = {key: figures for key, figures in told.items() if key[0] not in ("IDLE", "Dataset")}
    rows = (
        op_calls(trace_of(profile))
        .group_by("name", "scope")
        .agg(pl.len(), pl.col("host_total_ns", "host_self_ns").sum())
    )
    mine = {
        (name, scope): [calls, total / 1000, own / 1000]
        for name, scope, calls, total, own in rows.iter_rows()
    }
    assert mine.keys() == ops.keys()
    for key, figures in ops.items():
        assert mine[key] == pytest.approx(figures, rel=EXACT), key


@pytest.mark.parametrize("profile", TENSORFLOW)
def test_datasets_are_stages_of_the_input(profile: str) -> None:
    """The same time, by the last word of the iterator's path."""
    told = {
        name.rpartition("::")[2]: total
        for kind, name, _, total, _ in theirs(profile, "framework_op_stats")
        if kind == "Dataset"
    }
    events = trace_of(profile).events
    rows = events.filter(pl.col("name").cast(pl.String).str.starts_with("Iterator::"))
    spent = rows.group_by(pl.col("name").cast(pl.String).str.strip_prefix("Iterator::")).agg(
        pl.col("dur_ns").sum()
    )
    assert {name: ns / 1000 for name, ns in spent.iter_rows()} == pytest.approx(told, rel=EXACT)
