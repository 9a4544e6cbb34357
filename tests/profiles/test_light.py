"""The light window beside a trace: found by the trace's name, read only when it is asked for, and never believed."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.replay.light import LightHost, NotJoined
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.find.sidecars import LIGHT_ENDING
from stepscope.profiles.light import LightRecording, read_light
from stepscope.server.runs.listed import listed
from stepscope.trace.frames import take_largest
from stepscope.trace.trace import Trace

RECORDED = Path(__file__).parents[1] / "fixtures" / "capture_gpu" / "torch"
SPEED = 2


def record(folder: Path, **changed: Any) -> Path:
    """A recording of a GPU with a light window: the same steps, launches only, `SPEED` times as fast."""
    shutil.copytree(RECORDED, folder, dirs_exist_ok=True)
    (path,) = folder.glob("*.pt.trace.json.gz")
    (sidecar,) = folder.glob("*.stepscope.json")
    document = json.loads(gzip.decompress(path.read_bytes()))
    base = int(document.get("baseTimeNanoseconds", 0))
    steps = [
        each
        for each in document["traceEvents"]
        if each["name"].startswith("ProfilerStep#") and each.get("cat") == "user_annotation"
    ]
    steps.sort(key=lambda each: each["ts"])
    zero = steps[0]["ts"]
    ends = [0.0, *(each["ts"] + each["dur"] - zero for each in steps)]
    kinds = ("cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "ac2g")
    events = [each for each in document["traceEvents"] if each.get("cat") in kinds or each["ph"] == "M"]
    for each in events:
        if "ts" in each:
            each["ts"] = zero + (each["ts"] - zero) / SPEED
            each |= {"dur": each["dur"] / SPEED} if "dur" in each else {}
    stem = sidecar.name.removesuffix(".stepscope.json")
    (folder / (stem + LIGHT_ENDING)).write_bytes(
        gzip.compress(json.dumps(document | {"traceEvents": events}).encode())
    )
    length = round(ends[-1] / SPEED * 1000)
    began = base + round(zero * 1000)
    clock = [{"unix_ns": began + at, "perf_counter_ns": 7 + at} for at in (0, length)]
    light = {
        "file": stem + LIGHT_ENDING,
        "first": 1,
        "moments_ns": [7 + round(end / SPEED * 1000) for end in ends],
        "clock": {"start": clock[0], "end": clock[1]},
    }
    note = json.loads(sidecar.read_text()) | {"light": light | changed}
    sidecar.write_text(json.dumps(note))
    return folder


def load(folder: Path) -> Trace:
    (trace,) = stepscope.load(folder, cache=False).traces
    return trace


def test_the_analysis_joins_it(tmp_path: Path) -> None:
    light = RankContext(0, load(record(tmp_path)), Options()).light
    assert isinstance(light, LightHost)
    assert (light.aligned, light.light_steps) == (1.0, 5)
    assert light.factor == pytest.approx(1 / SPEED, rel=0.05)


def test_the_report_uses_it_and_has_nothing_to_say(tmp_path: Path) -> None:
    report = stepscope.report(record(tmp_path), limit=0)
    assert "light-window-unused" not in [problem.code for problem in report.problems]
    assert report.steps.count == 5


def test_opening_a_profile_does_not_read_it(tmp_path: Path) -> None:
    record(tmp_path)
    next(tmp_path.glob(f"*{LIGHT_ENDING}")).write_bytes(b"")
    profile = stepscope.load(tmp_path, cache=False)
    assert "light-window-unused" not in profile.table("problems")["code"]


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\x1f\x8b broken", b'{"traceEvents": [1, 2'])
def test_one_that_cannot_be_read_is_reported(tmp_path: Path, content: bytes | None) -> None:
    record(tmp_path)
    path = next(tmp_path.glob(f"*{LIGHT_ENDING}"))
    path.unlink() if content is None else path.write_bytes(content)
    report = stepscope.report(tmp_path, limit=0)
    assert "light-window-unused" in [problem.code for problem in report.problems]


@pytest.mark.parametrize(
    "changed",
    [
        {"file": "../../etc/passwd"},
        {"moments_ns": [5, 3]},
        {"moments_ns": [1]},
        {"moments_ns": [0, 1, 10**18]},
    ],
)
def test_a_sidecar_is_not_believed(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert isinstance(RankContext(0, load(record(tmp_path, **changed)), Options()).light, NotJoined)


@pytest.mark.parametrize("light", [None, 3, {}, {"file": None, "reason": "off"}, {"file": "a", "clock": 3}])
def test_without_one_nothing_is_read(tmp_path: Path, light: Any) -> None:
    folder = record(tmp_path)
    (sidecar,) = folder.glob("*.stepscope.json")
    sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | {"light": light}))
    assert read_light(load(folder)) is None


def test_moments_lie_on_the_time_axis_of_its_file(tmp_path: Path) -> None:
    found = read_light(load(record(tmp_path)))
    assert isinstance(found, LightRecording)
    events = found.trace.events
    assert found.moments[0] <= take_largest(events["start_ns"]) <= found.moments[-1] + 1_000_000


def test_a_report_that_is_kept_notices_when_it_changes(tmp_path: Path) -> None:
    (run,) = scan(record(tmp_path)).runs
    before = listed(run, "").key()
    next(tmp_path.glob(f"*{LIGHT_ENDING}")).write_bytes(b"other")
    assert listed(run, "").key() != before
