"""A modified copy of a recording: every difference is real, and the modification is the first line, however small."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from stepscope.diffs.build import Diff, diff_sides
from stepscope.diffs.noise.same_recording import is_one_recording
from stepscope.gate.budget import growth
from stepscope.gate.check import check_diff
from tests.diffs.recordings import SAME, path_of, recorded, side
from tests.sample import of_each

pytestmark = pytest.mark.thorough

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
Events = list[dict[str, Any]]


def events_of(name: str) -> tuple[dict[str, Any], Events]:
    with gzip.open(path_of(name), "rt") as file:
        whole = json.load(file)
    return whole, whole["traceEvents"]


def changed(name: str, whole: dict[str, Any], folder: Path) -> Diff:
    target = folder / "changed.pt.trace.json"
    target.write_text(json.dumps(whole))
    return diff_sides(recorded(name), side(target))


def kernels(events: Events) -> Events:
    return [event for event in events if event.get("cat") == "kernel"]


PAIRS = [(f"{job}.none.{x}", f"{job}.none.{y}") for job, n in SAME.items() for x, y in combinations(n, 2)]
SAMPLED = of_each(PAIRS, lambda pair: pair[0].split(".")[0])


@pytest.mark.parametrize("pair", SAMPLED)
def test_two_recordings_are_no_copies(pair: tuple[str, str]) -> None:
    assert not is_one_recording(*(recorded(name).samples for name in pair))


def test_a_recording_and_itself() -> None:
    found = diff_sides(recorded("wide.none.0"), recorded("wide.none.0"))
    assert (found.one_recording, found.significant, found.lines) == (True, False, [])
    assert found.verdict.endswith("Both are the same recording, without any difference.")
    assert found.not_comparable == ["A and B are the same profile."]


@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_kernel_slower_by_a_tenth(place: int, tmp_path: Path) -> None:
    """Only its own times are changed: the next kernel begins no later."""
    whole, events = events_of("wide.none.0")
    times = Counter({str(each["name"]): 0.0 for each in kernels(events)})
    for each in kernels(events):
        times[each["name"]] += each["dur"]
    name = times.most_common()[place][0]
    for each in kernels(events):
        each["dur"] *= 1.1 if each["name"] == name else 1.0
    found = changed("wide.none.0", whole, tmp_path)
    rows = [row for row in found.kernels.rows if row.significant]
    assert {row.name for row in rows} == {name}
    assert found.lines[0].name in {row.op for row in rows}
    assert all(row.relative == pytest.approx(0.1, rel=0.01) for row in rows)


def test_another_wait_in_each_step(tmp_path: Path) -> None:
    """Put in without care: the device idles though it has work."""
    whole, events = events_of("wide.none.0")
    wait_us = 2000.0
    marks = [each for each in events if str(each.get("name")).startswith("ProfilerStep")]
    for mark in sorted(
        (each for each in marks if each["cat"] == "user_annotation"), key=lambda each: -each["ts"]
    ):
        at = mark["ts"] + mark["dur"] / 2
        for each in events:
            if each.get("ph") != "M" and float(each.get("ts", 0)) >= at:
                each["ts"] += wait_us
            elif "dur" in each and each.get("cat") not in DEVICE and each["ts"] + each["dur"] > at:
                each["dur"] += wait_us
        events.append(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": mark["pid"], "tid": mark["tid"],
             "ts": at + 1, "dur": wait_us - 2, "args": {"correlation": 900_000 + len(events)}}
        )  # fmt: skip
    found = changed("wide.none.0", whole, tmp_path)
    first = found.lines[0]
    assert (first.kind, first.title) == ("sync", "waiting for the device in cudaDeviceSynchronize")
    assert first.difference == pytest.approx(1e3 * wait_us, rel=0.01)
    assert first.detail == "only in B"


def test_everything_slower_by_one_factor_is_no_slow_machine(tmp_path: Path) -> None:
    whole, events = events_of("wide.none.0")
    for each in events:
        for key in ("ts", "dur"):
            if key in each and each.get("ph") != "M":
                each[key] = float(each[key]) * 1.2
    found = changed("wide.none.0", whole, tmp_path)
    assert found.one_recording
    assert found.speed == []
    assert found.step.significant
    assert not check_diff(found, growth(["5%"])).passed
