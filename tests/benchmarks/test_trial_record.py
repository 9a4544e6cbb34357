"""The recorder of a trial with real frameworks on the CPU: tiny jobs, good and bad ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import PATIENCE_SECONDS, ROOT, environment, needs
from tests.sample import in_soak

HEAD = """
FRAMEWORK = "{framework}"
KIND = "training"
HEALTHY = {healthy}
MISTAKE = "sleeps"
FIX = "sleeps less"
import time
"""
TORCH = """
import torch

def build(fixed):
    net = torch.nn.Linear(8, 8)
    batch = torch.ones(4, 8)

    def step(i):
        net(batch).sum().backward()
        time.sleep(0.001 if fixed else 0.02)

    return step
"""
JAX = """
import jax, jax.numpy as jnp

def build(fixed):
    state = [jnp.ones((8, 8))]
    update = jax.jit(lambda x: x @ x / 8)

    def step(i):
        state[0] = update(state[0])
        time.sleep(0.001 if fixed else 0.02)

    return step
"""
TENSORFLOW = """
import tensorflow as tf

def build(fixed):
    weights = tf.Variable(tf.ones((8, 8)))

    @tf.function
    def update():
        weights.assign(weights @ weights / 8)

    def step(i):
        update()
        time.sleep(0.001 if fixed else 0.02)

    return step
"""
# A framework that is not named plainly is not imported ahead, nor is it needed by a job that never runs.
UNNAMED = "import os, time\nFRAMEWORK = str('torch')\n"
BROKEN = {
    "01_crash": "def build(fixed):\n    os.write(1, b'last words')\n    os._exit(3)\n",
    "02_raises": "def build(fixed):\n    raise KeyError('what')\n",
    "03_lacks": "import not_there_at_all\n",
    "04_hang": "def build(fixed):\n    time.sleep(1000)\n",
}


def job(path: Path, framework: str, body: str, healthy: bool = False) -> None:
    path.write_text(HEAD.format(framework=framework, healthy=healthy) + body)


def record(jobs: Path, out: Path, *more: str) -> tuple[dict[str, dict[str, Any]], str]:
    command = [sys.executable, "-m", "benchmarks.trial.record", str(jobs), str(out)]
    command += ["--rounds", "2", "--round-seconds", "0.02", *more]
    ended = subprocess.run(
        command,
        env=environment(OMP_NUM_THREADS="1", JAX_PLATFORMS="cpu"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        cwd=ROOT,
    )
    results = {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/result.json")}
    return results, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("framework", "body", "file"),
    [
        pytest.param("torch", TORCH, "job.pt.trace.json", marks=[needs("torch"), in_soak]),
        pytest.param("jax", JAX, "job.xplane.pb", marks=needs("jax")),  # imported soonest
        pytest.param("tensorflow", TENSORFLOW, "job.xplane.pb", marks=[needs("tensorflow"), in_soak]),
    ],
)
def test_a_job_and_a_healthy_one(framework: str, body: str, file: str, tmp_path: Path) -> None:
    jobs, out = tmp_path / "jobs", tmp_path / "out"
    jobs.mkdir()
    job(jobs / "01_slow.py", framework, body)
    job(jobs / "02_healthy.py", framework, body, healthy=True)
    results, said = record(jobs, out, "--patience", "300", "--bundle", str(tmp_path / "sent"))
    slow, healthy = results["01_slow"], results["02_healthy"]
    assert (slow["error"], healthy["error"]) == ("", ""), said
    assert len(slow["rounds"]) == 4 and slow["gain"]["mid"] > 1.5
    assert slow["step_ns"]["slow"] > 20_000_000 and slow["waited_ns"]["slow"] > 20_000_000
    assert slow["mistake"] == "sleeps" and len(slow["unprofiled_ns"]) == 2
    assert healthy["gain"] is None and healthy["step_ns"].keys() == {"slow"}
    assert "2 of 2 recorded" in said and (tmp_path / "sent" / "trial.0.tar").exists()
    for name in results:
        assert (out / name / "framework" / file).stat().st_size
        assert list((out / name / "ours").rglob("*.stepscope.json"))


@needs("jax")
def test_stepscope_alone_records_no_second_profile(tmp_path: Path) -> None:
    jobs, out = tmp_path / "jobs", tmp_path / "out"
    jobs.mkdir()
    job(jobs / "01_slow.py", "jax", JAX)
    results, said = record(jobs, out, "--ours", "--patience", "300")
    assert len(results["01_slow"]["rounds"]) == 2, said
    assert results["01_slow"]["gain"]["mid"] > 1.5
    assert list((out / "01_slow" / "ours").rglob("*.stepscope.json"))
    assert not (out / "01_slow" / "framework").exists()


def test_a_job_that_fails_costs_only_itself(tmp_path: Path) -> None:
    jobs, out = tmp_path / "jobs", tmp_path / "out"
    jobs.mkdir()
    for name, body in BROKEN.items():
        (jobs / f"{name}.py").write_text(UNNAMED + body)
    results, said = record(jobs, out, "--only", "0[123]")
    assert "slow: build: the process ended last words" in results["01_crash"]["error"], said
    assert "slow: build: KeyError: 'what'" in results["02_raises"]["error"]
    assert "slow: load: ModuleNotFoundError" in results["03_lacks"]["error"]
    assert "0 of 3 recorded" in said
    results, said = record(jobs, out, "--only", "04", "--patience", "4")
    assert "took too long" in results["04_hang"]["error"], said


def test_no_job_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "01_never.py").write_text(UNNAMED)
    results, said = record(tmp_path, tmp_path / "out", "--seconds", "1")
    assert results == {} and "No time for 01_never" in said
