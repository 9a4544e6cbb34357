"""A profile in figures: steps once, devices once, problems by severity."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest

from stepscope.native import interpreted
from stepscope.profiles.find.runs import Entry, Run
from stepscope.profiles.find.walk import Skipped
from stepscope.profiles.load import load
from stepscope.profiles.overview import SCHEMA, Category, Device, Overview, Steps, overview
from stepscope.profiles.profile import Profile
from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from stepscope.trace.problems import Problem, Problems
from stepscope.trace.trace import Trace, TraceInfo
from tests.builders.files import kineto, put
from tests.builders.traces import draft, trace


def of(*traces: Trace, ranks: list[int] | None = None) -> Overview:
    """The figures of a profile of these traces."""
    return overview(Profile("/somewhere", traces, ranks or list(range(len(traces)))))


def test_what_is_known_of_one_trace() -> None:
    found = of(trace())
    assert found.schema == SCHEMA
    assert (found.framework, found.format, found.hosts) == (["pytorch"], ["kineto"], ["node1"])
    assert found.versions == {"cuda_runtime": 13000}
    assert found.capture_options == {"with_stack": True, "record_shapes": False}
    assert found.devices == [Device("NVIDIA H200", count=1, used=1)]
    assert (found.events, found.device_events, found.duration_ns) == (11, 3, 30_000)
    assert found.world_size == 2
    assert found.tables["kernels"] == 2
    assert found.tables["modules"] == 1
    assert found.interpreted == interpreted()


def test_each_step_counts_once() -> None:
    assert of(trace()).steps == Steps(2, "ProfilerStep", 3, 4, min_ns=10_000, median_ns=15_000, max_ns=20_000)


def test_steps_of_several_ranks_count_once() -> None:
    found = of(trace(0), trace(1))
    assert found.steps is not None
    assert found.steps.count == 2
    assert [rank.steps for rank in found.ranks] == [2, 2]


def test_a_marker_on_two_threads_is_one_step() -> None:
    unfinished = draft()
    again = unfinished.events.filter(pl.col("name").str.starts_with("ProfilerStep")).with_columns(
        track=pl.lit(2, pl.UInt32), dur_ns=pl.col("dur_ns") - 5_000
    )
    unfinished.events = pl.concat([unfinished.events, again])
    found = of(finish(unfinished)).steps
    assert found is not None
    assert (found.count, found.min_ns, found.max_ns) == (2, 10_000, 20_000)


def test_no_markers_no_steps() -> None:
    unfinished = draft()
    unfinished.events = unfinished.events.with_columns(name=pl.lit("x"))
    assert of(finish(unfinished)).steps is None


def test_a_mark_far_away_does_not_stretch_the_duration() -> None:
    unfinished = draft()
    mark = {
        "name": "Record Window End",
        "kind": "instant",
        "source_category": None,
        "track": 0,
        "start_ns": 10**15,
        "dur_ns": 0,
    }
    unfinished.events = pl.concat([unfinished.events, pl.DataFrame([mark], schema=unfinished.events.schema)])
    assert of(finish(unfinished)).duration_ns == 30_000


def test_categories_by_count() -> None:
    found = of(trace()).categories
    assert found[0] == Category("cpu_op", "op", 2, 3_001)
    assert sum(each.events for each in found) == 11


def test_devices_of_one_host_are_counted_once() -> None:
    def seen(device: int, host: str | None) -> Trace:
        unfinished = draft()
        unfinished.info.host = host
        unfinished.info.devices = [{"id": number, "name": "V100"} for number in range(4)]
        unfinished.tracks = unfinished.tracks.with_columns(device=pl.when(pl.col("device") == 0).then(device))
        return finish(unfinished)

    assert of(seen(0, None), seen(3, None)).devices == [Device("V100", count=4, used=2)]
    assert of(seen(0, "a"), seen(0, "b")).devices == [Device("V100", count=8, used=2)]


def test_devices_that_the_file_does_not_describe() -> None:
    unfinished = draft()
    unfinished.info.devices = []
    assert of(finish(unfinished)).devices == [Device("gpu", count=1, used=1)]


def test_a_device_without_events() -> None:
    unfinished = draft()
    unfinished.tracks = unfinished.tracks.with_columns(what=pl.lit("host"))
    found = of(finish(unfinished))
    assert found.device_events == 0
    assert found.devices == [Device("NVIDIA H200", count=1, used=0)]


def test_problems_errors_first_and_ranks_together() -> None:
    found = of(trace(0), trace(1)).problems
    assert [(each.code, each.severity, each.ranks) for each in found] == [
        ("cut", "error", [0, 1]),
        ("odd", "info", [0, 1]),
    ]
    assert found[0].count == 246


def test_options_that_differ_between_ranks_are_listed() -> None:
    other = draft(1)
    other.info.capture_options = {"with_stack": False, "record_shapes": False}
    found = of(trace(), finish(other)).capture_options
    assert found == {"with_stack": [True, False], "record_shapes": False}


def test_other_runs_and_skipped_files() -> None:
    run = Run("later", (Entry("/x/later.json", "/x", size=77),), "/x/later.json")
    problems = Problems()
    problems.add(Problem("other-runs", "There are other runs here", "", severity="info"))
    profile = Profile(
        "/x",
        [trace()],
        [0],
        name="now",
        problems=problems,
        skipped=[Skipped("/x/a", "why")],
        other_runs=[run],
    )
    found = overview(profile)
    assert [(each.name, each.is_loaded, each.address, each.bytes) for each in found.runs] == [
        ("now", True, None, 0),
        ("later", False, "/x/later.json", 77),
    ]
    assert [(each.path, each.reason) for each in found.skipped] == [("/x/a", "why")]


def test_what_the_cache_holds(tmp_path: Path) -> None:
    put(tmp_path, "a.pt.trace.json", content=kineto())
    kept = overview(load(tmp_path)).cache
    assert kept is not None
    assert (kept.kept, kept.files) == (1, 1)
    put(tmp_path, "b.pt.trace.json", content=kineto())
    unkept = load(tmp_path / "b.pt.trace.json", cache=False)
    assert overview(unkept, is_cached=False).cache is None


def test_a_trace_without_anything() -> None:
    nothing = Draft(TraceInfo(), pl.DataFrame(schema={"track": pl.UInt32, "name": pl.String, "kind": pl.String, "source_category": pl.String, "start_ns": pl.Int64, "dur_ns": pl.Int64}), pl.DataFrame({"id": []}, schema={"id": pl.UInt32}))  # fmt: skip
    found = of(finish(nothing))
    assert (found.events, found.steps, found.devices, found.duration_ns) == (0, None, [], 0)


@pytest.mark.parametrize("traces", [[trace()], [trace(0), trace(1)]])
def test_json_and_back(traces: list[Trace]) -> None:
    found = of(*traces)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Overview) == found
