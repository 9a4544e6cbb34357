"""Runs the jobs: unprofiled step times before and after the fix, and a small profile of both."""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.job import Job, Step

WARM_UP = 6
SETS = {"tuned": "{}_jobs", "heldout": "heldout_{}"}  # the held-out ones never guide a rule


def main() -> None:
    """Each framework in a process of its own: two CUPTI clients in one process disturb each other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--framework", choices=("torch", "jax"))
    parser.add_argument(
        "--set", choices=tuple(SETS), default="tuned", help="the jobs to run (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.framework:
        run_all(options.framework, options.set, options.out, options.only, options.seconds)
        return
    for framework in ("torch", "jax"):
        command = [sys.executable, "-m", "benchmarks.diagnosis", str(options.out), "--framework", framework]
        command += ["--set", options.set, "--only", options.only, "--seconds", str(options.seconds)]
        subprocess.run(command, check=False)


def run_all(framework: str, chosen: str, out: Path, only: str, seconds: float) -> None:
    """Every job whose name matches, until the time is up."""
    jobs: tuple[Job, ...] = import_module(f"benchmarks.diagnosis.{SETS[chosen].format(framework)}").JOBS
    record, finish = (record_torch, finish_torch) if framework == "torch" else (record_jax, finish_jax)
    until = time.perf_counter() + seconds
    for job in jobs:
        if re.search(only, job.name) and time.perf_counter() < until:
            run_job(job, out, record, finish)


Record = Callable[[Job, Step, Path], None]


def run_job(job: Job, out: Path, record: Record, finish: Callable[[], None]) -> None:
    """Measure and record the job as it is and mended; a failure is told and the next job goes on."""
    result: dict[str, Any] = {
        "name": job.name,
        "code": job.code,
        "samples": job.samples,
        "healthy": job.healthy,
    }
    for variant in ("mended",) if job.healthy else ("slow", "mended"):
        try:
            step = getattr(job, variant)()
            result[f"{variant}_ns"] = measured(step, finish)
            record(job, step, out / f"{job.name}.{variant}")
            del step
            release()
        except Exception as error:
            result[f"{variant}_error"] = f"{type(error).__name__}: {error}"[:300]
    (out / f"{job.name}.json").write_text(json.dumps(result))
    print(json.dumps(result), flush=True)


def measured(step: Step, finish: Callable[[], None]) -> int:
    """The median of three runs of several unprofiled steps, per step, after a warm-up."""
    for number in range(WARM_UP):
        step(number)
    finish()
    count, runs = 10, []
    for run in range(3):
        begin = time.perf_counter_ns()
        for number in range(count):
            step(WARM_UP + run * count + number)
        finish()
        runs.append((time.perf_counter_ns() - begin) // count)
    return sorted(runs)[1]


def release() -> None:
    """What one variant held must not count as the next one's."""
    gc.collect()
    if "torch" in sys.modules:
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def finish_torch() -> None:
    """Wait for the device."""
    import torch

    torch.cuda.synchronize()


def finish_jax() -> None:
    """Wait for the device."""
    import jax

    jax.effects_barrier()
    (jax.device_put(0.0) + 0).block_until_ready()


def record_torch(job: Job, step: Step, target: Path) -> None:
    """A window of steps with shapes, as the profiler's own schedule marks them."""
    from torch.profiler import ProfilerActivity, profile, schedule

    path = target.with_name(target.name + ".pt.trace.json")
    plan = schedule(wait=0, warmup=2, active=job.steps, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=plan,
        record_shapes=True,
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
        **job.options,
    ) as prof:
        for number in range(2 + job.steps):
            step(100 + number)
            prof.step()
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", 9) as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()


def record_jax(job: Job, step: Step, target: Path) -> None:
    """A window of steps under StepTraceAnnotation."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 1
        jax.profiler.start_trace(folder, profiler_options=options)
        for number in range(job.steps):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step(100 + number)
        finish_jax()
        jax.profiler.stop_trace()
        found = next(Path(folder).rglob("*.xplane.pb"))
        with (
            found.open("rb") as plain,
            gzip.open(target.with_name(target.name + ".xplane.pb.gz"), "wb", 9) as packed,
        ):
            shutil.copyfileobj(plain, packed)


if __name__ == "__main__":
    main()
