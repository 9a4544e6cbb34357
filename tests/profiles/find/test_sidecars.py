"""Sidecars of our own capture: rank, run and step times reach the trace; damage costs nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.profiles.find.catalog import scan
from stepscope.profiles.find.sidecars import sidecar_path
from stepscope.profiles.load import load
from tests.builders.files import put

TIME = 1_790_000_000_000_000_000


def note(folder: Path, stem: str, **fields: Any) -> None:
    """A sidecar with these fields."""
    text = json.dumps({"schema": "stepscope.capture/1", "backend": "torch", "run": "r", **fields})
    (folder / f"{stem}.stepscope.json").write_text(text)


def test_where_it_lies() -> None:
    assert sidecar_path("a/h_1.17.pt.trace.json.gz") == "a/h_1.17.stepscope.json"
    assert sidecar_path("a/h.xplane.pb") == "a/h.stepscope.json"
    assert sidecar_path("a/h.trace.json") == "a/h.stepscope.json"
    assert sidecar_path("a/trace.json.gz") is None


def test_rank_host_and_step_times(tmp_path: Path) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    steps = {
        "before": {"first": 1, "durations_ns": [900, 800, 10, 12, 14]},
        "inside": {"first": 6, "durations_ns": [20, 24, 28]},
        "after": {"first": 9, "durations_ns": [500, 12]},
    }
    unprofiled = {"before": run(25, 12)}
    note(tmp_path, f"h_1.{TIME}", rank=3, world_size=4, host="node", steps=steps, unprofiled=unprofiled)
    info = load(tmp_path).traces[0].info
    assert (info.rank, info.world_size, info.host) == (3, 4, "node")
    assert info.capture["unprofiled_step_ns"] == 12
    assert info.capture["unprofiled_steps"] == 25
    assert info.capture["profiled_step_ns"] == 24


def run(
    count: int,
    mean_ns: float,
    *,
    synchronised: bool = True,
    scatter: float = 0.0,
    host: list[float] | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """A run of unprofiled steps, as a sidecar has it."""
    return {
        "first": 3,
        "count": count,
        "total_ns": round(count * mean_ns),
        "mean_ns": mean_ns,
        "low_ns": mean_ns * (1 - scatter),
        "high_ns": mean_ns * (1 + scatter),
        "synchronised": synchronised,
        "host_durations_ns": [3, 5] if host is None else host,
        "workers": workers,
    }


def spread(tmp_path: Path, **runs: Any) -> tuple[int, int]:
    """Between which lengths the reader says that the unprofiled step lies."""
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    note(tmp_path, f"h_1.{TIME}", unprofiled=runs)
    found = load(tmp_path).traces[0].info.capture["unprofiled_step"]
    return found["low_ns"], found["high_ns"]


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        ({"before": run(20, 1000)}, (1000, 20, "before")),
        ({"before": run(3, SECOND / 2)}, (SECOND // 2, 3, "before")),
        ({"before": run(19, 1000)}, None),  # too short by both
        ({"before": run(20, 1000, synchronised=False)}, None),
        ({"before": run(20, 1000), "after": run(20, 1100)}, (1050, 40, "before and after")),
        ({"before": run(20, 1000), "after": run(20, 800)}, (1000, 20, "before")),  # prefetched batches
        ({"before": run(5, 1000), "after": run(20, 1100)}, (1080, 25, "before and after")),
        ({"before": run(5, 1000), "after": run(20, 1300)}, None),
        ({"after": run(40, 1000)}, None),  # nothing to check it by
        ({}, None),
        (None, None),
    ],
)
def test_the_unprofiled_step(tmp_path: Path, runs: Any, wanted: Any) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    note(tmp_path, f"h_1.{TIME}", unprofiled=runs)
    found = load(tmp_path).traces[0].info.capture["unprofiled_step"]
    if wanted is None:
        assert found is None
    else:
        assert (found["mean_ns"], found["count"], found["source"]) == wanted
        assert found["low_ns"] <= 0.97 * found["mean_ns"] < 1.03 * found["mean_ns"] <= found["high_ns"] + 1
        assert found["host_ns"] == 3


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ([25, 22, 30], 23.5),  # the queue was full before the third step was over
        ([25, 22, 23], 70 / 3),
        ([25], 25),
        ([22] * 19 + [30], 22.4),  # nothing held the host up
        ([30, 28, 35] + [40] * 17, 29),  # held up without a jump, by a device that is a little slower
        ([30, 28, *[40, 36] * 9], 37.1),  # a host of which the first steps happen to be short
        ([30, *[40] * 19], 39.5),
    ],
)
def test_the_hosts_own_step_ends_before_the_queue_is_full(
    tmp_path: Path, host: list[float], own: float
) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    host = [each * 1000 for each in host]
    note(tmp_path, f"h_1.{TIME}", unprofiled={"before": run(20, 40_000, host=host)})
    found = load(tmp_path).traces[0].info.capture["unprofiled_step"]
    assert found["host_ns"] == round(1000 * own)


@pytest.mark.parametrize(
    ("host", "later", "own"),
    [
        ([20, 20], [15, 15], 15),  # held up by the device: the run in which less disturbed the host
        ([15, 15], [20, 20], 15),
        ([40] * 20, [15, 15], 40),  # the host decides: its step is as long as the basis has it
    ],
)
def test_a_host_that_is_held_up_is_as_fast_as_in_the_faster_run(
    tmp_path: Path, host: list[float], later: list[float], own: float
) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    runs = {"before": run(20, 40, host=host), "after": run(20, 40, host=later)}
    note(tmp_path, f"h_1.{TIME}", unprofiled=runs)
    assert load(tmp_path).traces[0].info.capture["unprofiled_step"]["host_ns"] == own


WARMING_UP: list[float] = [*[1600] * 10, *[1000] * 10]


@pytest.mark.parametrize(
    ("host", "after", "wanted"),
    [
        (WARMING_UP, run(20, 1050, host=[1050] * 20), (1050, "after")),
        (WARMING_UP, run(20, 1050, host=[1050] * 20, workers=4), (1300, "before")),  # prefetched batches
        (WARMING_UP, run(20, 700, host=[700] * 20), (1300, "before")),  # faster than it ever was
        (WARMING_UP[::-1], run(20, 1050, host=[1050] * 20), (1300, "before")),
        (WARMING_UP, run(5, 1050, host=[1050] * 5), (1300, "before")),
    ],
)
def test_a_job_that_warmed_up_before_the_window_is_as_fast_as_after_it(
    tmp_path: Path, host: list[float], after: dict[str, Any], wanted: tuple[int, str]
) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    note(tmp_path, f"h_1.{TIME}", unprofiled={"before": run(20, 1300, host=host), "after": after})
    found = load(tmp_path).traces[0].info.capture["unprofiled_step"]
    assert (found["mean_ns"], found["source"]) == wanted


def host_bound(mean_ns: float, scatter: float = 0.0) -> dict[str, Any]:
    """A run in which the host decides how long a step takes."""
    return run(20, mean_ns, scatter=scatter, host=[mean_ns] * 20)


def test_the_spread_covers_the_drift_of_the_host_or_of_the_device(tmp_path: Path) -> None:
    assert spread(tmp_path, before=host_bound(1000)) == (920, 1080)
    assert spread(tmp_path, before=run(20, 1000), after=run(20, 1000)) == (960, 1040)


def test_a_slower_run_after_the_window_widens_the_spread_but_is_not_in_the_mean(tmp_path: Path) -> None:
    assert spread(tmp_path, before=host_bound(1000), after=host_bound(1500, scatter=0.1)) == (920, 1650)


def test_batches_that_workers_made_meanwhile_do_not_widen_the_spread(tmp_path: Path) -> None:
    assert spread(tmp_path, before=host_bound(1000), after=run(20, 500, workers=4)) == (920, 1080)
    assert spread(tmp_path, before=host_bound(1000), after=host_bound(500)) == (500, 1080)


def test_bursts_of_a_full_queue_are_no_spread(tmp_path: Path) -> None:
    assert spread(tmp_path, before=run(20, 1000, scatter=0.6), after=run(20, 1010, scatter=2.0)) == (
        965,
        1045,
    )
    assert spread(tmp_path, before=run(20, 1000, scatter=0.6)) == (
        400,
        1600,
    )  # one run: nothing else is known


def test_with_regions_the_loops_steps_are_not_the_steps(tmp_path: Path) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    regions = {"names": ["train"], "first": 0, "which": [0]}
    note(tmp_path, f"h_1.{TIME}", unprofiled={"before": run(30, 1000)}, regions=regions)
    assert load(tmp_path).traces[0].info.capture["unprofiled_step_ns"] is None


def test_without_steps_outside_nothing_is_claimed(tmp_path: Path) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    note(tmp_path, f"h_1.{TIME}")
    assert load(tmp_path).traces[0].info.capture["unprofiled_step_ns"] is None


def test_other_recorders_have_no_notes(tmp_path: Path) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    assert load(tmp_path).traces[0].info.capture == {}


def test_files_of_one_run_belong_together_however_far_apart(tmp_path: Path) -> None:
    hour = 3_600_000_000_000
    for rank in range(3):
        stem = f"host{rank}_7.{TIME + rank * hour}"
        put(tmp_path, f"{stem}.pt.trace.json")
        note(tmp_path, stem, rank=rank, world_size=3)
    note(tmp_path, f"host9_7.{TIME}", run="other")
    put(tmp_path, f"host9_7.{TIME}.pt.trace.json")
    runs = scan(tmp_path).runs
    assert sorted(len(run.entries) for run in runs) == [1, 3]
    assert scan(tmp_path).skipped == []


def test_problems_of_the_recording_are_told(tmp_path: Path) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    problem = {"code": "capture-failed", "title": "No CUPTI", "severity": "error"}
    note(tmp_path, f"h_1.{TIME}", problems=[problem])
    told = load(tmp_path).problems.filter(code="capture-failed")
    assert told["severity"].to_list() == ["error"]


def test_a_damaged_sidecar_costs_only_itself(tmp_path: Path) -> None:
    put(tmp_path, f"h_1.{TIME}.pt.trace.json")
    for damage in (b"{", b"\xff\xfe", b"[]", b'{"schema": "stepscope.capture/1", "rank": "x"}'):
        (tmp_path / f"h_1.{TIME}.stepscope.json").write_bytes(damage)
        profile = load(tmp_path)
        assert len(profile.events) == 4
        assert profile.problems.filter(code="sidecar-unreadable").height == 1
