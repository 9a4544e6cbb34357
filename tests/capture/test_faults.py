"""Everything that can go wrong: the job ends as it would without us, and what was recorded can be read."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.capture.files.writer import is_whole
from stepscope.profiles.find.catalog import scan
from stepscope.ring_layout import ENDING as RING
from tests.capture import running
from tests.capture.jobs import warm
from tests.capture.running import needs, sidecars, traces
from tests.cli.inside import succeeds
from tests.sample import SOAKS

KILLS = 50 if SOAKS else 6
# With PyTorch each takes seconds: `make test` leaves the ends that differ only before the collector is asked to the host's.
ENDS_WITHOUT_TORCH = () if SOAKS else ("exited", "raised_between", "terminated_with_handler", "nested")
TOGETHER = 32 if SOAKS else 12
BACKENDS = [pytest.param("host"), pytest.param("torch", marks=needs("torch"))]


def start(folder: Path, how: str, backend: str = "host", **added: str) -> Any:
    """The rough job; with a framework, in a fork: some thirty imports of PyTorch would take most of the time."""
    if backend == "host":
        return running.start("rough_job", folder, how, **added)
    return warm.start(backend, "rough_job", folder, how, backend)


def run(folder: Path, how: str, backend: str = "host") -> subprocess.CompletedProcess[str]:
    """The same, to its end."""
    job = start(folder, how, backend)
    out, err = job.communicate()
    return subprocess.CompletedProcess([how], job.returncode, out, err)


def readable(folder: Path) -> int:
    """All files under final names are whole and can be loaded; their number."""
    found = traces(folder)
    for path in found:
        assert is_whole(path), path
        assert len(stepscope.load(path, cache=False).events) > 0
    for path in folder.rglob("*.stepscope.json"):
        json.loads(path.read_text())
    return len(found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_killed_at_any_moment(tmp_path: Path, backend: str) -> None:
    chance = random.Random(backend)
    kills = KILLS if backend == "host" else max(2, KILLS // 5)
    for number in range(kills):
        folder = tmp_path / str(number)
        job = start(folder, "endless", backend)
        assert job.stdout is not None
        assert job.stdout.readline() == "running\n"
        time.sleep(chance.random() * 0.2)
        job.kill()
        job.communicate()
        assert readable(folder) >= 1


def info_of(folder: Path) -> dict[str, Any]:
    """What `stepscope info` says of the folder; it must succeed."""
    found: dict[str, Any] = json.loads(succeeds("info", folder, "--format", "json", "--no-cache"))
    return found


def codes(found: dict[str, Any]) -> list[str]:
    """Of its problems."""
    return [problem["code"] for problem in found["problems"]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_kept_is_read_whenever_it_was_killed(tmp_path: Path, backend: str) -> None:
    chance = random.Random(f"kept {backend}")
    kills = KILLS if SOAKS else 6 if backend == "host" else 2
    for number in range(kills):
        folder = tmp_path / str(number)
        job = start(folder, "any_moment", backend)
        assert job.stdout is not None
        assert job.stdout.readline() == "running\n"
        time.sleep(chance.random() * 0.6)
        job.kill()
        _, errors = job.communicate()
        assert job.returncode == -signal.SIGKILL
        assert "stepscope" not in errors and "Traceback" not in errors, errors  # PyTorch has its own to say
        found = info_of(folder)
        is_complete = found["format"] != ["stepscope-ring"]
        assert is_complete or codes(found)[0] == "capture-killed", number


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("how", "status"), [("left", 9), ("crashed", -signal.SIGSEGV), ("killed", -signal.SIGKILL)]
)
def test_where_it_ended(tmp_path: Path, how: str, status: int, backend: str) -> None:
    ended = run(tmp_path / "run", how, backend)
    assert ended.returncode == status, ended.stderr
    found = info_of(tmp_path / "run")
    assert codes(found)[0] == "capture-killed"
    assert "in step 5, inside of outer > inner" in found["problems"][0]["detail"]
    assert ("What PyTorch writes when a window ends is missing" in found["problems"][0]["detail"]) == (
        backend == "torch"
    )
    profile = stepscope.load(tmp_path / "run", cache=False)
    spans = profile.traces[0].events.filter(pl.col("kind") == "annotation").sort("start_ns")
    assert spans["name"].cast(pl.String).to_list() == [
        "step 4",
        "work",
        "step 5 (unfinished)",
        "outer",
        "inner",
    ]
    assert spans["step"].drop_nulls().unique().to_list() == [4]
    capture = profile.traces[0].info.capture
    assert (capture["last_step"], len(capture["telemetry"]["samples"]) >= 1) == (4, True)
    assert len(capture["steps"]["before"]["durations_ns"]) == 4
    assert len(capture["steps"]["inside"]["durations_ns"]) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_killed_while_the_framework_stops(tmp_path: Path, backend: str) -> None:
    assert run(tmp_path / "run", "killed_in_stop", backend).returncode == -signal.SIGKILL
    found = info_of(tmp_path / "run")
    assert codes(found)[0] == "capture-killed"
    assert found["steps"]["count"] == 3


def test_killed_before_the_window(tmp_path: Path) -> None:
    assert run(tmp_path / "run", "killed_before_the_window").returncode == -signal.SIGKILL
    found = info_of(tmp_path / "run")
    assert "only the times of the steps" in found["problems"][0]["detail"]
    assert found["steps"]["count"] == 7


def test_the_complete_window_wins(tmp_path: Path) -> None:
    assert run(tmp_path / "run", "killed_between").returncode == -signal.SIGKILL
    found = info_of(tmp_path / "run")
    assert found["format"] == ["chrome"], "the window that is whole is loaded"
    assert {"capture-killed", "other-runs"} <= set(codes(found))
    assert "never-stopped" not in codes(found), "its hidden folder tells nothing that the ring does not"
    profile = stepscope.load(tmp_path / "run", cache=False)
    (other,) = profile.other_runs
    assert [entry.format_hint for entry in other.entries] == ["stepscope-ring"]
    assert codes(info_of(Path(str(other.address))))[0] == "capture-killed"


def test_what_could_not_be_written_stays_in_the_ring(tmp_path: Path) -> None:
    ended = run(tmp_path / "run", "unwritten")
    assert (ended.returncode, ended.stdout.split(" [")[0]) == (0, "trained 0"), ended.stderr
    found = info_of(tmp_path / "run")
    assert codes(found)[0] == "capture-unwritten"
    assert found["steps"]["count"] == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_child_does_not_write_into_the_ring(tmp_path: Path, backend: str) -> None:
    ended = run(tmp_path / "run", "forked_and_killed", backend)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    (trace,) = stepscope.load(tmp_path / "run", cache=False).traces
    names = set(trace.events["name"].cast(pl.String))
    assert "work" in names and "of the child" not in names
    assert trace.info.capture["last_step"] == 5


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("forgotten", 0),
        ("exited", 3),
        ("raised", 1),
        ("raised_between", 1),
        ("terminated", -signal.SIGTERM),
        ("terminated_with_handler", 7),
        ("forked", 0),
        ("nested", 0),
    ],
)
def test_ends_as_it_would(tmp_path: Path, how: str, status: int, backend: str) -> None:
    if backend == "torch" and how in ENDS_WITHOUT_TORCH:
        pytest.skip("part of make soak")
    ended = run(tmp_path / "run", how, backend)
    assert ended.returncode == status, ended.stderr
    assert readable(tmp_path / "run") == (2 if how == "nested" else 1)
    assert ("KeyError: 'of the user'" in ended.stderr) == how.startswith("raised")
    assert list((tmp_path / "run").rglob(".*")) == []
    assert list((tmp_path / "run").rglob(f"*{RING}")) == []
    if how == "nested":
        assert ended.stderr.count("start() was called twice") == 1
        assert ended.stderr.count("Another stepscope Profiler is running") == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_room_for_the_file(tmp_path: Path, backend: str) -> None:
    ended = run(tmp_path / "run", "no_room", backend)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("trained 0 ")
    if backend == "host":  # PyTorch does not say what was wrong
        assert "disk-full" in ended.stdout
    assert ended.stderr.count("CaptureWarning") == 1
    assert traces(tmp_path / "run") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system with 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    return disk


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_disk_is_full(small_disk: Path, backend: str) -> None:
    try:
        (small_disk / "filler").write_bytes(bytes(290_000))
        ended = run(small_disk / "run", "no_room", backend)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.startswith("trained 0 ")
        assert traces(small_disk / "run") == []
    finally:
        subprocess.run(["umount", "-l", str(small_disk)], check=False)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ended = run(tmp_path / "file" / "run", "read_only")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("trained 0 ")
    assert ended.stderr.count("CaptureWarning") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o500)
    ended = run(tmp_path / "run", "read_only")
    assert ended.returncode == 0, ended.stderr
    assert "folder-unwritable" in ended.stdout


def test_many_processes_into_one_folder(tmp_path: Path) -> None:
    """All begin at once; every one is found."""
    jobs = [start(tmp_path, "together", RANK=str(rank), WORLD_SIZE=str(TOGETHER)) for rank in range(TOGETHER)]
    for job in jobs:
        assert job.stdout is not None and job.stdout.readline() == "ready\n"
    for job in jobs:
        assert job.stdin is not None
        job.stdin.write("\n")
        job.stdin.flush()
    for job in jobs:
        _, errors = job.communicate()
        assert job.returncode == 0, errors
    assert readable(tmp_path) == TOGETHER
    notes = sidecars(tmp_path)
    assert sorted(note["rank"] for note in notes) == list(range(TOGETHER))
    assert len({note["run"] for note in notes}) == 1
    runs = scan(tmp_path).runs
    assert [len(run.entries) for run in runs] == [TOGETHER]
    assert stepscope.load(tmp_path).ranks == list(range(TOGETHER))
