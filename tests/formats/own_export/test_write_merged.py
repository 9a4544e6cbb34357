"""Several ranks in one Chrome trace: each in its own processes, all in one time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.formats.own_export.write_merged import RankPart, merged_text
from stepscope.ranks.common_time import rank_times, told
from stepscope.trace.frames import take_smallest
from tests.builders.jobs.gloo_ranks import BASE_NS, OFFSETS, recorded, recording
from tests.cli.inside import stepscope as command


def ends_by_rank(document: dict[str, Any], name: str) -> dict[int, list[float]]:
    """By rank, when its events of this name end, in µs of the file."""
    named = [each for each in document["traceEvents"] if each["ph"] == "M" and each["name"] == "process_name"]
    rank_of = {each["pid"]: int(each["args"]["name"].split(" · ")[0].removeprefix("Rank ")) for each in named}
    found: dict[int, list[float]] = {}
    for event in document["traceEvents"]:
        if event["ph"] == "X" and event["name"] == name:
            found.setdefault(rank_of[event["pid"]], []).append(event["ts"] + event["dur"])
    return found


def test_collectives_end_together(tmp_path: Path) -> None:
    """Clocks 51 ms and 60 ppm apart: in the file the ends differ by no more than the clocks were written with."""
    ended = command(
        "export", recorded(tmp_path / "in"), "--to", "chrome", "-o", tmp_path / "all.json", "--no-cache"
    )
    assert ended.returncode == 0, ended.stderr
    assert "4 ranks, aligned by the ends of their collectives" in ended.stderr
    document = json.loads((tmp_path / "all.json").read_text())
    ends = ends_by_rank(document, "gloo:all_reduce")
    assert sorted(ends) == [0, 1, 2, 3]
    for same in zip(*(sorted(each) for each in ends.values()), strict=True):
        assert max(same) - min(same) < 0.1  # µs
    clocks = document["otherData"]["stepscope_ranks"]
    assert [clock["aligned_by"] for clock in clocks] == ["collectives"] * 4
    assert all(clock["residual_ns"] < 100 for clock in clocks)
    for clock in clocks:
        # The offset is that in the middle of the calls, which is not quite ours.
        assert clock["shift_ns"] == pytest.approx(BASE_NS - OFFSETS[clock["rank"]], abs=500)
    again = stepscope.load(tmp_path / "all.json", cache=False)
    told_once = [each for each in stepscope.report(again).problems if each.code == "two-workers"]
    assert [each.title for each in told_once] == ["Several ranks are in one file"]
    assert told_once[0].detail.startswith(
        "stepscope export --merge wrote it, for Perfetto: calls and kernels of 4 ranks"
    )


def test_each_rank_has_processes_of_its_own(tmp_path: Path) -> None:
    """Ids of processes, threads and flows are told apart; what nested in a rank still nests."""
    profile = stepscope.load(recorded(tmp_path / "in"), cache=False)
    times = rank_times(profile)
    parts = [
        RankPart(rank, trace, times[rank].common)
        for rank, trace in zip(profile.ranks, profile.traces, strict=True)
    ]
    document = json.loads("".join(merged_text(parts, told(list(times.values())))))
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(events) == sum(len(trace.events) for trace in profile.traces)
    pids = {event["pid"] for event in events}
    assert len(pids) == 4 and not pids & {event["tid"] for event in events}
    assert min(event["ts"] for event in events) == 0
    steps = [event for event in events if event["name"] == "ProfilerStep#3"]
    for step in steps:
        inside = [
            event
            for event in events
            if event["pid"] == step["pid"]
            and event["name"] == "aten::mm"
            and event["args"]["stepscope"]["step"] == 3
        ]
        assert len(inside) == 1
        assert step["ts"] <= inside[0]["ts"]
        assert inside[0]["ts"] + inside[0]["dur"] <= step["ts"] + step["dur"] + 1e-3


def test_without_collectives_the_recorded_clocks_stand(tmp_path: Path) -> None:
    profile = stepscope.load(recorded(tmp_path / "in", calls=False), cache=False)
    times = rank_times(profile)
    assert {time.how for time in times.values()} == {"recorded"}
    assert {time.shift_ns for time in times.values()} == {BASE_NS}


def test_clocks_that_put_ranks_apart_are_not_believed(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "in", calls=False)
    away = recording(1, calls=False) | {"baseTimeNanoseconds": BASE_NS + 3_600_000_000_000}
    (folder / "rank1.pt.trace.json").write_text(json.dumps(away))
    profile = stepscope.load(folder, cache=False)
    times = rank_times(profile)
    assert times[1].how == "begin"
    first = [
        take_smallest(trace.events["start_ns"]) + times[rank].shift_ns
        for rank, trace in zip(profile.ranks, profile.traces, strict=True)
        if rank < 2
    ]
    assert first[0] == first[1]


def test_the_report_tells_the_same_clocks(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "in")
    times = rank_times(stepscope.load(folder, cache=False))
    clocks = stepscope.report(folder, sections=["collectives"]).collectives.clocks
    for clock in clocks:
        assert times[clock.rank].shift_ns == BASE_NS - clock.offset_ns
        assert times[clock.rank].residual_ns == clock.residual_ns
