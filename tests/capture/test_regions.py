"""Regions of real loops agree with the job's own clock, and none has time of another or of what is between them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture.regions import Regions
from stepscope.gate.budget import budget
from stepscope.gate.check import check
from stepscope.profiles.load import load
from tests.capture.jobs import warm
from tests.capture.running import needs, sidecars
from tests.capture.running import told as told_by_process
from tests.patience import measured
from tests.sample import in_soak

AGREES = 0.03
MARKING_NS = 500_000  # of a pass: two marks, with the Python stack of what they call
FRAMEWORKS = [
    "python",
    pytest.param("torch", marks=needs("torch")),
    pytest.param("tensorflow", marks=[needs("tensorflow"), in_soak]),
]


def told(framework: str, *arguments: object) -> dict[str, Any]:
    """What the job tells; that of PyTorch is a fork, whose import is that of other tests, too."""
    if framework == "torch":
        return warm.told(framework, "regions_job", framework, *arguments)
    return told_by_process("regions_job", framework, *arguments)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_region_agrees_with_the_clock_of_the_job(framework: str, tmp_path: Path) -> None:
    def attempt(number: int) -> None:
        found = told(framework, tmp_path / str(number), "collect", "train")
        for name in ("collect", "train"):
            took, mine = found["took"][name], found["found"][name]
            assert mine["region"] == name
            assert len(mine["durations"]) == len(took)
            longer = MARKING_NS * len(took)
            assert sum(mine["durations"]) == pytest.approx(sum(took), rel=AGREES, abs=longer), name
            assert mine["account"] == sum(mine["durations"])
            assert found["regions"][name][0] == len(took)
        assert found["noted"]["names"] == ["collect", "train"]
        assert found["noted"]["passes"] == 12
        assert found["shown"] == max(found["took"], key=lambda name: sum(found["took"][name]))

    measured(attempt)


@pytest.mark.parametrize(
    "framework",
    ["python", pytest.param("torch", marks=[needs("torch"), in_soak]), pytest.param("tensorflow", marks=[needs("tensorflow"), in_soak])],
)  # fmt: skip
def test_one_region_alone_agrees_with_the_clock_of_the_job(framework: str, tmp_path: Path) -> None:
    def attempt(number: int) -> None:
        found = told(framework, tmp_path / str(number), "train")
        durations = found["found"]["train"]["durations"]
        assert sum(durations) == pytest.approx(sum(found["took"]["train"]), rel=AGREES)
        assert list(found["regions"]) == ["train"]

    measured(attempt)


def _recorded(folder: Path, train: int = 20_000) -> Any:
    with stepscope.profile(folder, backends=("host",), regions=True) as prof:
        for _ in range(4):
            with prof.region("collect"):
                sum(range(200_000))
            with prof.region("train"):
                sum(range(train))
            prof.step()
    return prof


def test_the_sidecar_says_that_regions_were_on(tmp_path: Path) -> None:
    prof = _recorded(tmp_path)
    (note,) = sidecars(tmp_path)
    assert note["regions"]["names"] == ["collect", "train"]
    assert note["regions"]["which"] == [0, 1] * 4
    assert all(duration > 0 for duration in note["regions"]["durations_ns"])
    assert prof.report(sections=("steps",)).steps.count == 4


def test_without_regions_the_sidecar_says_so_too(tmp_path: Path) -> None:
    with stepscope.profile(tmp_path, backends=("host",)) as prof:
        prof.step()
    (note,) = sidecars(tmp_path)
    assert note["regions"] is None


def test_a_region_inside_another_is_part_of_it(tmp_path: Path) -> None:
    with stepscope.profile(tmp_path, backends=("host",), regions=True, stacks=False) as prof:
        for _ in range(3):
            with prof.region("outer"):
                with prof.region("inner"):
                    sum(range(1_000))
                sum(range(100_000))
    report = prof.report(sections=("steps", "phases"))
    assert (report.steps.region, report.steps.count, report.steps.regions) == ("outer", 3, ["outer"])
    inner = next(row for row in report.phases if row.name == "outer")
    assert inner.calls == 3
    assert report.steps.rows[0].duration_ns > prof.phases["inner"]["total_ns"] / 3


def test_a_diff_compares_the_same_region(tmp_path: Path) -> None:
    """Of A collecting takes longest, of B training does."""
    _recorded(tmp_path / "a")
    _recorded(tmp_path / "b", train=4_000_000)
    assert stepscope.report(tmp_path / "b", sections=("steps",)).steps.region == "train"
    found = stepscope.diff(tmp_path / "a", tmp_path / "b")
    collect = {
        side: stepscope.report(tmp_path / side, step_name="collect", sections=("steps",)) for side in "ab"
    }
    assert found.step.a == pytest.approx(collect["a"].steps.mean_ns)
    assert found.step.b == pytest.approx(collect["b"].steps.mean_ns)


def test_a_gate_has_limits_for_each_region(tmp_path: Path) -> None:
    _recorded(tmp_path)
    limits = {
        "train": {"step_time": "10 min"},
        "collect": {"step_time": "1 ns"},
        "other": {"step_time": "1 s"},
    }
    found = check(load(str(tmp_path)), budget({"regions": limits}, "test"))
    verdicts = {each.name: each.verdict for each in found.checks}
    assert verdicts["regions.train.step_time"] == "ok"
    assert verdicts["regions.collect.step_time"] in ("over", "noisy")
    assert verdicts["regions.other.step_time"] == "unknown"
    assert not found.passed


def test_a_region_of_another_thread_is_not_a_step() -> None:
    regions = Regions(True)
    regions.enter("train")
    left = []
    other = threading.Thread(target=lambda: left.append((regions.may_enter("train"), regions.leave())))
    other.start()
    other.join()
    assert left == [(False, False)]
    assert regions.leave()
    assert json.loads(json.dumps(regions.taken()))["passes"] == 1
