"""Real processes that train together, recorded by our capture, one of them slowed on purpose: it is named, and why."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from subprocess import Popen

import pytest

import stepscope
from stepscope.report.model import Report
from tests.capture.running import PATIENCE_SECONDS, in_soak, needs, start

JOBS = Path(__file__).parent / "jobs"
LATE = 1


def recorded(out: Path, processes: list[Popen[str]]) -> Report:
    """The report of what the processes recorded, once all have ended well."""
    try:
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE_SECONDS)
            assert process.returncode == 0, err[-2000:]
    finally:
        for process in processes:  # one that failed leaves the others waiting for it
            process.kill()
    return stepscope.report(out, sections=["steps", "collectives", "findings"])


def check(report: Report, world: int, how: str, late_rank: int = LATE) -> None:
    """The slow one is named with its kind and cause, and so are those that wait for it."""
    assert report.profile.ranks == list(range(world))
    told = report.collectives
    late = told.straggler
    assert late is not None and (late.rank, late.kind) == (late_rank, "always")
    assert late.cause == how
    assert "straggler" in [finding.code for finding in report.findings]
    assert told.matched >= report.steps.count
    assert {wait.for_rank for wait in told.waits if wait.wait_ns > 0.5 * late.late_ns} == {late_rank}
    assert all(clock.aligned and clock.residual_ns is not None for clock in told.clocks)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return found


@needs("torch")
@pytest.mark.parametrize("how", ["input", pytest.param("python", marks=in_soak)])
def test_torch_over_gloo(tmp_path: Path, how: str) -> None:
    world, late, out, init = 4, 2, tmp_path / "run", tmp_path / "init"
    processes = [
        start(JOBS / "ddp_job.py", out, init, rank, world, late, how, RANK=str(rank), WORLD_SIZE=str(world))
        for rank in range(world)
    ]
    check(recorded(out, processes), world, how, late)


@needs("jax")
@pytest.mark.parametrize("how", ["python", pytest.param("input", marks=in_soak)])
def test_jax(tmp_path: Path, how: str) -> None:
    world, out = 2, tmp_path / "run"
    address = f"127.0.0.1:{free_ports(1)[0]}"
    processes = [
        start(JOBS / "jax_job.py", out, address, rank, world, LATE, how, JAX_PLATFORMS="cpu")
        for rank in range(world)
    ]
    report = recorded(out, processes)
    check(report, world, how)
    row = report.collectives.rows[0]
    assert (row.name, row.dtype, row.group_size) == ("all_reduce", "float32", world)
    assert row.bytes == row.calls * 256 * 256 * 4


@needs("tensorflow")
@pytest.mark.parametrize("how", ["input", pytest.param("python", marks=in_soak)])
def test_tensorflow(tmp_path: Path, how: str) -> None:
    world, out = 2, tmp_path / "run"
    workers = [f"127.0.0.1:{port}" for port in free_ports(world)]
    processes = [
        start(JOBS / "tensorflow_job.py", out, rank, LATE, how, TF_CONFIG=_config(workers, rank))
        for rank in range(world)
    ]
    report = recorded(out, processes)
    check(report, world, how)
    assert all(meeting.sequence is not None for meeting in report.collectives.worst)


def _config(workers: list[str], rank: int) -> str:
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
