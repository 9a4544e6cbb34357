"""Loops whose turns copy their own input to the device: together, the host has to stack these first."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.loops.stacked_inputs import with_stacked_inputs
from stepscope.analysis.findings.rules.host import unbatched_loop
from stepscope.trace.frames import conform
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
COPY = "Memcpy {} (Pageable -> Device)"
GEMM = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
TURNS, TURN, STEPS = 16, 60, 3


def forecasts(nbytes: int, direction: str = "HtoD") -> Case:
    """Steps of 1 ms with one input of so many bytes and one product for each of 16 turns."""
    copy = COPY.format(direction)
    lines = [HEAD]
    for step in range(STEPS):
        begin = 1000 * step
        lines += [f"main  {begin}  1000  ProfilerStep#{step}  annotation  -  -  -"]
        lines += [f"main  {begin + 2}  990  serve.py(7): forecast_all  python  -  -  -"]
        for at in range(begin + 5, begin + 5 + TURN * TURNS, TURN):
            lines += [f"main  {at}  20  aten::copy_  op  -  [[1,512]]  float"]
            lines += [f"main  {at + 2}  10  cudaMemcpyAsync  runtime  {copy}  -  -"]
            lines += [f"stream 7  {at + 10}  2  {copy}  copy  -  -  -"]
            lines += [f"main  {at + 25}  30  aten::mm  op  -  [[1,512],[512,512]]  float,float"]
            lines += [f"main  {at + 30}  5  cudaLaunchKernel  runtime  {GEMM}  -  -"]
            lines += [f"stream 7  {at + 40}  4  {GEMM}  kernel  -  -  -"]
    trace = compute_trace("\n".join(lines))
    copies = trace.events.filter(pl.col("kind") == "copy")
    places = {"source": pl.lit("Pageable"), "target": pl.lit("Device")}
    table = copies.select(event="id", bytes=pl.lit(nbytes), direction=pl.lit(direction), **places)
    tables = {**trace.tables, "copies": conform(table, trace.copies.schema)}
    return case_of(trace.over(tables, trace.cold))


def gain(nbytes: int, direction: str = "HtoD") -> float:
    found = unbatched_loop.find(forecasts(nbytes, direction))
    assert found is not None
    assert found.evidence["iterations"] == TURNS
    return found.speedup.mid


def test_the_more_is_stacked_the_less_is_gained() -> None:
    assert gain(100_000) < gain(10_000) < gain(100)


def test_results_are_not_stacked() -> None:
    assert gain(100_000, "DtoH") > gain(100_000)


@pytest.mark.parametrize("nbytes", [100, 10_000])
def test_each_piece_and_its_bytes_take_time_of_the_host(nbytes: int) -> None:
    case = forecasts(nbytes)
    together = unbatched_loop.batched(case, case.loops)
    change = with_stacked_inputs(case, case.loops, together)
    added = [
        (int(after.items["added_ns"].sum()) - int(before.items["added_ns"].sum())) / STEPS / TURNS
        for before, after in ((together.smallest, change.smallest), (together.largest, change.largest))
    ]
    assert added == pytest.approx(
        [1000 + nbytes / 4 + nbytes / 5, 200 + nbytes / 12 + nbytes / 12.5], rel=0.01
    )
