"""Real processes that train together, recorded by our capture, one of them slowed on purpose: it is named, and why."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from subprocess import Popen

import pytest

import stepscope
from stepscope.reports.model.report import Report
from tests.capture.running import PATIENCE_SECONDS, needs, start
from tests.patience import measured
from tests.sample import in_soak

JOBS = Path(__file__).parent / "jobs"
LATE = 1
# In each step. What a busy machine takes from the others, and when, is chance: where it hides this, more of it is planted.
SLOWER_SECONDS = (0.5, 1.5, 3.0, 3.0)
# Where the machine's own name leads nowhere, gloo finds no address to meet at.
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks")
HERE = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}


def recorded(out: Path, processes: list[Popen[str]]) -> Report:
    """The report of what the processes recorded, once all have ended well."""
    with ThreadPoolExecutor(len(processes)) as pool:
        ended = {pool.submit(each.communicate, timeout=PATIENCE_SECONDS): each for each in processes}
        try:
            for future in as_completed(ended):
                _, err = future.result()
                assert ended[future].returncode == 0, err[-2000:]
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


def slowed(attempt: Callable[[str, dict[str, str]], None]) -> None:
    """With a name and an environment for the jobs."""
    measured(
        lambda number: attempt(str(number), HERE | {"SLOWER_SECONDS": str(SLOWER_SECONDS[number])}),
        len(SLOWER_SECONDS),
    )


@needs("torch")
@forks
@pytest.mark.parametrize("how", ["input", pytest.param("python", marks=in_soak)])
def test_torch_over_gloo(tmp_path: Path, how: str) -> None:
    world, late = 4, 2

    def attempt(name: str, env: dict[str, str]) -> None:
        out, init = tmp_path / name, tmp_path / f"{name}.init"
        check(
            recorded(out, [start(JOBS / "ddp_job.py", out, init, world, late, how, **env)]), world, how, late
        )

    slowed(attempt)


# Of what the job measured itself; a busy machine makes sleeps longer.
EXACT, SLEEPS = 0.10, (0.3, 0.6, 1.2, 1.2)


@needs("torch")
@forks
def test_a_sleep_costs_what_it_lasts_however_many_buckets_wait(tmp_path: Path) -> None:
    """Against the job's own clock: by how much the late rank came to its backward pass after the last of the others."""
    world, late = 4, 2

    def attempt(number: int) -> None:
        out = tmp_path / str(number)
        out.mkdir()
        job = start(JOBS / "buckets_job.py", out, out / "init", world, late, SLEEPS[number], **HERE)
        report = recorded(out, [job])
        ready = [json.loads((out / f"rank{rank}.ready").read_text()) for rank in range(world)]
        others = [
            max(times) for times in zip(*(ready[rank] for rank in range(world) if rank != late), strict=True)
        ]
        truth = sum(mine - other for mine, other in zip(ready[late], others, strict=True)) / len(others)
        found = report.collectives.straggler
        assert found is not None and found.rank == late
        assert found.late_ns_per_step == pytest.approx(truth, rel=EXACT)
        assert found.late_ns_per_step == pytest.approx(SLEEPS[number] * 1e9, rel=EXACT)
        finding = next(finding for finding in report.findings if finding.code == "straggler")
        assert finding.saves_ns_per_step <= (report.steps.mean_ns or 0)

    measured(attempt, len(SLEEPS))


@needs("jax")
@pytest.mark.parametrize("how", ["python", pytest.param("input", marks=in_soak)])
def test_jax(tmp_path: Path, how: str) -> None:
    world = 2

    def attempt(name: str, env: dict[str, str]) -> None:
        address = f"127.0.0.1:{free_ports(1)[0]}"
        processes = [
            start(JOBS / "jax_job.py", tmp_path / name, address, rank, world, LATE, how, **env, JAX_PLATFORMS="cpu")
            for rank in range(world)
        ]  # fmt: skip
        report = recorded(tmp_path / name, processes)
        check(report, world, how)
        row = report.collectives.rows[0]
        assert (row.name, row.dtype, row.group_size) == ("all_reduce", "float32", world)
        assert row.bytes == row.calls * 256 * 256 * 4

    slowed(attempt)


@needs("tensorflow")
@pytest.mark.parametrize("how", ["input", pytest.param("python", marks=in_soak)])
def test_tensorflow(tmp_path: Path, how: str) -> None:
    world = 2

    def attempt(name: str, env: dict[str, str]) -> None:
        workers = [f"127.0.0.1:{port}" for port in free_ports(world)]
        processes = [
            start(JOBS / "tensorflow_job.py", tmp_path / name, rank, LATE, how, **env, TF_CONFIG=_config(workers, rank))
            for rank in range(world)
        ]  # fmt: skip
        report = recorded(tmp_path / name, processes)
        check(report, world, how)
        assert all(meeting.sequence is not None for meeting in report.collectives.worst)

    slowed(attempt)


def _config(workers: list[str], rank: int) -> str:
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
