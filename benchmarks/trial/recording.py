"""The two recordings of a job: by stepscope as a user would, and by the framework's own profiler alone."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.diagnosis.job import Step
from benchmarks.trial.timing import Finish

ACTIVE = 4
# Before the window: what the capture skips and its light window; after it: what it skips, and its second run.
_BESIDES, _RUN_STEPS, _RUN_SECONDS, _MOST_STEPS = 16, 20, 1.2, 60


def plan_run(mean: float, workers: int) -> int:
    """Steps of a run that shows the un-profiled step: 20, a multiple of the workers, or a little over a second."""
    wanted = math.ceil(_RUN_STEPS / workers) * workers if workers <= _MOST_STEPS else _RUN_STEPS
    return min(wanted, max(4, math.ceil(_RUN_SECONDS / max(mean, 1e-7))))


def record_ours(step: Step, numbers: Iterator[int], folder: Path, mean: float, workers: int) -> list[str]:
    """With stepscope's default options and enough steps on both sides of the window; codes of its problems."""
    import stepscope

    run = plan_run(mean, workers)
    skip = run + _BESIDES
    window = stepscope.schedule(skip=skip, warmup=2, active=ACTIVE)
    with stepscope.profile(folder, schedule=window) as prof:
        for _ in range(skip + 2 + ACTIVE + run + 4):
            step(next(numbers))
            prof.step()
    return [str(problem.get("code")) for problem in prof.problems]


def record_torch(step: Step, finish: Finish, numbers: Iterator[int], folder: Path) -> None:
    """torch.profiler as its tutorial has it, with shapes and stacks."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    target = folder / "job.pt.trace.json"
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=2, active=ACTIVE, repeat=1),
        record_shapes=True,
        with_stack=True,
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(target)),
    ) as prof:
        for _ in range(3 + ACTIVE):
            step(next(numbers))
            prof.step()
    finish()


def record_jax(step: Step, finish: Finish, numbers: Iterator[int], folder: Path) -> None:
    """jax.profiler with its default options, and a StepTraceAnnotation around each step."""
    import jax

    with tempfile.TemporaryDirectory() as temporary:
        jax.profiler.start_trace(temporary)
        for number in range(ACTIVE):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step(next(numbers))
        finish()
        jax.profiler.stop_trace()
        shutil.move(next(Path(temporary).rglob("*.xplane.pb")), folder / "job.xplane.pb")


def record_tensorflow(step: Step, finish: Finish, numbers: Iterator[int], folder: Path) -> None:
    """TensorFlow's profiler as its guide has it, with a Trace around each step."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as temporary:
        tf.profiler.experimental.start(temporary)
        for number in range(ACTIVE):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(next(numbers))
        finish()
        tf.profiler.experimental.stop()
        shutil.move(next(Path(temporary).rglob("*.xplane.pb")), folder / "job.xplane.pb")
