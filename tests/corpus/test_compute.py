"""The account of compute in every profile of the corpora: it closes, and its bounds are physical."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from stepscope.errors import StepscopeError
from tests.corpus.recordings import context_of, some

FOLDERS = [
    Path(os.environ[name]) for name in ("STEPSCOPE_CORPUS", "STEPSCOPE_CORPUS_2") if os.environ.get(name)
]
FILES = sorted(
    str(path)
    for folder in FOLDERS
    for pattern in ("*.json.gz", "*.xplane.pb", "*.xplane.pb.gz", "*.sqlite.gz")
    for path in folder.rglob(pattern)
    if not path.name.endswith(".trace.json.gz") or path.name.endswith(".pt.trace.json.gz")
)
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="no corpus")]

BEYOND = 1.1  # a raw bound may exceed its kernel's time by as much: clocks and tables round
MOST_BEYOND = (
    0.15  # of compute time; Winograd and FFT convolutions do with fewer FLOPs than the formula counts
)


@pytest.mark.parametrize("path", some(FILES))
def test_ideal_and_losses_sum_to_compute(path: str) -> None:
    try:
        context = context_of(Path(path))
    except StepscopeError:
        pytest.skip("not read yet")
    found = context.compute
    computing = (
        context.parts.filter(pl.col("part") == "compute")
        .select("device", "step", "ns")
        .sort("step", "device")
    )
    summed = found.parts.group_by("device", "step").agg(pl.col("ns").sum()).sort("step", "device")
    assert summed.rows() == computing.rows()
    assert (found.parts["ns"] > 0).all()
    kernels = found.kernels
    assert (kernels["ideal_ns"] <= kernels["time_ns"]).all()
    assert kernels["event"].n_unique() == len(kernels)
    beyond = kernels.filter(pl.col("least_ns") > BEYOND * pl.col("time_ns"))
    assert int(beyond["time_ns"].sum()) <= MOST_BEYOND * max(1, int(kernels["time_ns"].sum()))
