"""Every job gets something: scripts without a loop, loops that nothing marks, frameworks that come late, jobs without a device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import stepscope
from stepscope.capture.command.outcome import outcome
from stepscope.capture.launch.environment import Plan
from stepscope.capture.loop.loop import Loop
from stepscope.cli.app import app
from tests.capture.jobs import warm
from tests.capture.running import PATIENCE_SECONDS, needs, sidecars, told, traces
from tests.capture.test_run import launched
from tests.sample import in_soak

PLAIN = """
def slow():
    return [i * i for i in range(200_000)]

for _ in range(3):
    slow()
"""
TORCH = """
import torch
a = torch.randn(64, 64)
print(float((a @ a).relu().sum()))
"""
TENSORFLOW = """
import tensorflow as tf
@tf.function
def product(x):
    return tf.reduce_sum(x @ x)
print(float(product(tf.random.normal((64, 64)))))
"""
EIGHT = """
import torch
from tests.capture.jobs.descent import Descent
model = torch.nn.Linear(32, 32)
optimizer = Descent(model.parameters())
for _ in range(8):
    model(torch.randn(8, 32)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SESSION = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
weights = tf.Variable(tf.random.normal((32, 32)))
loss = tf.reduce_sum(weights ** 2)
train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(40):
        session.run([train, loss])
"""
# What prepares the loop is jitted too, and called more than once.
JAX = """
import jax, jax.numpy as jnp
prepare = jax.jit(lambda a: jnp.ones((64, 64)) * a)
weights = [prepare(float(i)) for i in range(5)]
step = jax.jit(lambda w: w - 1e-3 * jax.grad(lambda v: jnp.sum(v @ v))(w))
w = weights[0]
for _ in range(200):
    w = step(w).block_until_ready()
"""
# Ends when it has been recorded: nothing here depends on the speed of the machine.
EAGER_JAX = f"""
import glob, time, jax.numpy as jnp
w = jnp.ones((64, 64))
until = time.time() + {PATIENCE_SECONDS}
while time.time() < until and not glob.glob("out/plugins/profile/*/*.stepscope.json"):
    w = (w - 1e-3 * (w @ w)).block_until_ready()
    time.sleep(0.002)
"""


def _job(folder: Path, text: str) -> Path:
    path = folder / "job.py"
    path.write_text(text)
    return path


def _run(folder: Path, text: str, **added: str) -> tuple[str, Any]:
    """What `stepscope run` says, and the report of what it recorded."""
    ended = launched(folder, "-o", "out", "--", sys.executable, _job(folder, text), **added)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stderr, stepscope.report(folder / "out", sections=("steps", "breakdown"))


def test_a_plain_script_is_recorded_as_a_whole(tmp_path: Path) -> None:
    said, report = _run(tmp_path, PLAIN)
    assert "recorded as a whole into out" in said
    assert report.profile.framework == "python"
    assert report.breakdown and sum(row.share for row in report.breakdown) == pytest.approx(1, abs=1e-3)
    (note,) = sidecars(tmp_path / "out")
    assert note["whole"] is True


@needs("torch")
def test_a_few_eager_ops_are_recorded_as_a_whole(tmp_path: Path) -> None:
    said, report = _run(tmp_path, TORCH)
    assert "recorded as a whole into out" in said
    assert report.breakdown and sum(row.share for row in report.breakdown) == pytest.approx(1, abs=1e-3)


@needs("tensorflow")
def test_one_call_of_a_function_is_recorded_as_a_whole(tmp_path: Path) -> None:
    said, report = _run(tmp_path, TENSORFLOW)
    assert "recorded as a whole into out" in said
    assert report.profile.framework == "tensorflow"
    assert report.profile.events > 0


@needs("torch")
def test_a_job_with_fewer_steps_than_were_asked_for_keeps_its_first_ones(tmp_path: Path) -> None:
    said, report = _run(tmp_path, EIGHT)
    assert "The job made 8 steps" in said
    assert (report.steps.source, report.steps.count) == ("marker", 3)


@needs("torch")
def test_eight_equal_iterations_without_step(tmp_path: Path) -> None:
    found = warm.told("torch", "eight_iterations", tmp_path)
    assert found["source"] in ("inferred", "annotation")
    assert found["count"] == 8


@needs("tensorflow")
def test_a_session_loop_is_recorded_by_its_runs(tmp_path: Path) -> None:
    said, report = _run(tmp_path, SESSION)
    assert "Recorded steps 10 to 15 into out." in said
    assert (report.steps.source, report.steps.count) == ("marker", 6)
    assert len(traces(tmp_path / "out")) == 1


@needs("jax")
def test_a_jit_loop_is_recorded_by_its_calls(tmp_path: Path) -> None:
    said, report = _run(tmp_path, JAX)
    assert "Recorded steps 10 to 15 into out." in said
    assert (report.profile.framework, report.steps.source, report.steps.count) == ("jax", "marker", 6)
    events = stepscope.load(tmp_path / "out").events
    calls = events.filter(pl.col("name").cast(pl.String).str.starts_with("PjitFunction"))
    # The window closes inside of the last one, where the hook is called.
    assert sorted(set(calls["step"].drop_nulls())) == [10, 11, 12, 13, 14]
    assert len(traces(tmp_path / "out")) == 1
    # The light recording before it leaves no folder, which would look like one that was never finished.
    assert [each for each in (tmp_path / "out/plugins/profile").iterdir() if not any(each.iterdir())] == []


@needs("jax")
def test_a_loop_without_jit_gets_a_timed_window_and_hears_of_it_while_it_runs(tmp_path: Path) -> None:
    said, report = _run(tmp_path, EAGER_JAX, STEPSCOPE_PATIENCE="1")
    assert "no training loop so far, after 1 s: recording 5 s of the job now" in said
    assert said.index("recording 5 s") < said.index("Next: stepscope report")
    assert report.profile.framework == "jax"
    (note,) = sidecars(tmp_path / "out")
    assert note["whole"] is False
    assert note["end_unix_ns"] - note["start_unix_ns"] > 4e9


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param("torch", marks=needs("torch")),
        pytest.param("jax", marks=needs("jax")),
        pytest.param("tensorflow", marks=[needs("tensorflow"), in_soak]),
    ],
)
def test_a_framework_that_is_imported_late_is_attached(tmp_path: Path, framework: str) -> None:
    found = told("late_import", framework, tmp_path)
    assert found["problems"] == []
    assert found["framework"] == {"torch": "pytorch"}.get(framework, framework)
    assert found["steps"] >= 4
    assert found["files"] == 2  # what came before the import is in a file of its own


def test_a_function_that_takes_most_of_the_step_is_a_finding(tmp_path: Path) -> None:
    """Among others, where another process took the machine from some of the steps."""
    found = told("dominant_function", tmp_path)
    (mine,) = (each for each in found["findings"] if each["code"] == "host-python")
    assert "in slow (" in mine["detail"]
    assert mine["share"] > 0.5
    assert mine["saves"] == 0  # by how much it can become faster is unknown
    assert mine["most"] > 2


def test_a_gate_that_cannot_see_says_unknown_and_ends_with_3(tmp_path: Path) -> None:
    _run(tmp_path, PLAIN)
    budget = tmp_path / "budgets.toml"
    budget.write_text('step_time = "1 s"\nfindings = ["input-bound"]\n')
    ended = CliRunner().invoke(app, ["check", str(tmp_path / "out"), "--budget", str(budget)])
    assert ended.exit_code == 3
    assert "UNKNOWN: 2 of 2 limits unknown." in ended.output


# ---- without frameworks


def _loop() -> tuple[Loop, list[str]]:
    heard: list[str] = []
    return Loop(lambda: heard.append("begin"), lambda: heard.append("step")), heard


def test_the_program_that_repeats_first_is_the_step() -> None:
    loop, heard = _loop()
    loop.dispatching("initialise")
    for _ in range(6):
        loop.dispatching("train")
        loop.dispatching("log")
    assert heard == ["begin", *["step"] * 3]
    assert loop.source == "dispatch"


def test_a_program_that_only_prepares_gives_way_to_the_loop() -> None:
    loop, heard = _loop()
    for _ in range(4):
        loop.dispatching("initialise")
    for _ in range(29):
        loop.dispatching("train")
    assert heard == ["begin", "step"]
    for _ in range(20):
        loop.dispatching("train")
    assert heard == ["begin", "step", "begin", *["step"] * 9]


def test_an_evaluation_between_steps_is_not_the_loop() -> None:
    loop, heard = _loop()
    for _ in range(3):
        for _ in range(20):
            loop.dispatching("train")
        for _ in range(100):
            loop.dispatching("evaluate")
    assert heard == ["begin", *["step"] * 57]


def test_whatever_else_is_heard_is_surer_than_dispatches() -> None:
    loop, heard = _loop()
    for _ in range(4):
        loop.dispatching("train")
    loop.fetching()
    loop.dispatching("train")
    assert loop.source == "loader"
    assert heard == ["begin", "step", "begin"]


def _note(tmp_path: Path, name: str, **fields: Any) -> dict[str, Any]:
    trace = tmp_path / f"{name}.pt.trace.json"
    trace.write_text("{}")
    (tmp_path / f"{name}.stepscope.json").write_text("{}")
    return {"steps": 20, "files": [], "whole_files": [], "frameworks": ["torch"]} | {
        key: [str(trace)] if value is True else value for key, value in fields.items()
    }


def test_recordings_of_launchers_go_where_others_recorded_steps(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path), 10, 15)
    notes = [_note(tmp_path, "launcher", whole_files=True, steps=0), _note(tmp_path, "worker", files=True)]
    assert outcome(plan, notes, "out", ["torchrun"]).text.startswith("Recorded steps 10 to 15 into out.")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "worker.pt.trace.json",
        "worker.stepscope.json",
    ]


def test_nothing_outside_of_the_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    plan = Plan(str(tmp_path / "out"), 10, 15)
    outcome(
        plan, [_note(tmp_path, "a", whole_files=True), _note(tmp_path, "b", files=True)], "out", ["python"]
    )
    assert (tmp_path / "a.pt.trace.json").exists()
