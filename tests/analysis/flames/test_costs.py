"""What events cost: of steps, of a range, by each measure."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analysis.context import RankContext, with_events
from stepscope.analysis.flames.costs import MEASURES, Costs, counted
from stepscope.analysis.ops.flame import by_scope, by_stack, host_times
from stepscope.analysis.options import Options
from stepscope.profiles.load import load
from stepscope.trace.trace import Trace
from tests.analysis.ops.test_flame import SAMPLE, paths, top
from tests.builders.inline import US, trace_of


@pytest.fixture(scope="module")
def sample() -> Trace:
    return load(SAMPLE).traces[0]


def costs_of(trace: Trace, measure: str, span: tuple[int, int] | None = None, **options: Any) -> Costs:
    return Costs(RankContext(0, trace, Options(**options)), measure, span)


def extent(trace: Trace) -> tuple[int, int]:
    events = trace.events.select("start_ns", end=pl.col("start_ns") + pl.col("dur_ns"))
    return events.select(pl.col("start_ns").min(), pl.col("end").max()).row(0)


def test_the_range_of_everything_is_everything(sample: Trace) -> None:
    bare = with_events(sample, sample.events.with_columns(step=pl.lit(None, dtype=pl.Int32)))
    whole = costs_of(sample, "host", extent(sample))
    assert top(by_stack(whole.trace, whole.own)) == top(by_stack(bare, host_times(bare)))
    for measure in ("device", "memory"):
        ranged, inside = costs_of(sample, measure, extent(sample)), costs_of(sample, measure, whole=True)
        assert top(by_stack(ranged.trace, ranged.own)) == top(by_stack(inside.trace, inside.own))


@pytest.mark.parametrize("measure", MEASURES)
def test_two_halves_are_the_whole(sample: Trace, measure: str) -> None:
    begin, end = extent(sample)
    middle = begin + (end - begin) // 3
    spans = (begin, middle), (middle, end), (begin, end)
    first, last, whole = (top(by_scope(costs_of(sample, measure, span).calls)) for span in spans)
    assert first + last == whole > 0


def test_bytes_are_those_of_the_devices_allocators(sample: Trace) -> None:
    costs = costs_of(sample, "memory")
    rows = sample.memory.filter(pl.col("bytes") > 0, pl.col("device_kind") != "cpu")
    inside = counted(costs.trace).gather(rows["event"])
    assert top(by_stack(costs.trace, costs.own)) == rows.filter(inside)["bytes"].sum() > 0
    assert top(by_scope(costs.calls)) == top(by_stack(costs.trace, costs.own))


def test_a_range_cuts_events_and_counts_device_work_that_runs_in_it() -> None:
    trace = trace_of(
        """
        track     start  dur  name              kind     launches
        main          0  100  mm                op       -
        main         10    5  cudaLaunchKernel  runtime  gemm
        stream 7    150   50  gemm              kernel   -
        """
    )
    host = costs_of(trace, "host", (40 * US, 60 * US))
    expected = {"main": (0, 20 * US, 0), "main/mm": (20 * US, 20 * US, 1)}
    assert paths(by_stack(host.trace, host.own)) == expected
    device = costs_of(trace, "device", (160 * US, 180 * US))
    assert paths(by_stack(device.trace, device.own)) == expected
