"""Jobs with one planted bottleneck, recorded on a real GPU: it is found first, and its speed-up is near the measured one."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.diagnosis.score import RECORDED, Verdict, jobs, judge, loud, recorded, reported
from benchmarks.recordings.archive import open_set
from stepscope.native.json.events import COMPILED
from stepscope.reports.model.report import Report
from tests.reports.promises import broken

# The same rules on the same tables: interpreted, reading over a hundred profiles only takes longer.
pytestmark = pytest.mark.skipif(not COMPILED, reason="takes many minutes interpreted")

# Reading over a hundred profiles takes minutes: the soak does, other runs look at those that lie in the tree as they are.
SOAKS = bool(os.environ.get("STEPSCOPE_SOAK"))
FOLDERS = [open_set("diagnosis"), open_set("diagnosis_heldout")] if SOAKS else [RECORDED]
JOBS: dict[str, tuple[Path, dict[str, Any]]] = {
    job["name"]: (folder, job)
    for folder in FOLDERS
    for job in jobs(folder)
    if list(folder.glob(f"{job['name']}.{'mended' if job['healthy'] else 'slow'}.*"))
}
PLANTED = [name for name, (_, job) in JOBS.items() if not job["healthy"]]
HEALTHY = [name for name, (_, job) in JOBS.items() if job["healthy"]]
# Python code in a profile without stacks or annotations: nothing can name it.
UNNAMED = {"heldout-torch-policy-advantages": "idle-unexplained"}
FAR = {
    "heldout-jax-policy-epochs",  # the profiler makes each wait longer, which no cost per event tells
    "heldout-torch-bert-precision",  # mended with bfloat16, which also halves what is no product
    "heldout-torch-gpt-attention",  # the promise is bound by a host that the profiler slows down
    "heldout-torch-gpt-batch",  # sixteen times the batch, where eight are promised
    "heldout-torch-recommender-table",  # the host's ops took a third longer without the profiler
}


def kept(path: Path) -> Report:
    """A report that contradicts itself nowhere."""
    found = reported(path)
    assert not broken(found), path.name
    return found


@cache
def verdict(name: str) -> Verdict:
    """Both variants are looked at once."""
    return judge(*JOBS[name], look=kept)


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_cause_comes_first_and_the_promise_is_near(name: str) -> None:
    found = verdict(name)
    if name in UNNAMED:
        assert found.slow[0].code == UNNAMED[name]
        return
    assert found.first, found.line()
    assert found.near or name in FAR, found.line()
    assert found.slow[0].speedup.low <= found.slow[0].speedup.mid <= found.slow[0].speedup.high


@pytest.mark.parametrize("name", PLANTED)
def test_the_mended_job_does_not_get_the_finding(name: str) -> None:
    assert verdict(name).gone, [one.code for one in verdict(name).mended]


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_jobs_get_a_calm_report(name: str) -> None:
    folder, job = JOBS[name]
    found = loud(kept(recorded(folder, job, "mended")).findings)
    assert not found, [(one.code, one.share) for one in found]


@pytest.mark.skipif(not SOAKS, reason="the soak reads all recorded jobs")
def test_there_are_enough_jobs_over_both_frameworks() -> None:
    assert len(PLANTED) >= 15 and len(HEALTHY) >= 10
    assert {re.split("[_-]", name.removeprefix("heldout-"))[0] for name in PLANTED} == {"torch", "jax"}


@pytest.mark.skipif(not SOAKS, reason="the soak reads all recorded jobs")
def test_the_promises_are_near_in_four_of_five() -> None:
    assert len(FAR.intersection(PLANTED)) + len(UNNAMED) <= 0.2 * len(PLANTED)
