"""What a light window costs, and how near its host time is to the un-profiled one. Wants a CUDA device, torch and JAX.

  PYTHONPATH=src python -m benchmarks.overhead.light record OUT     on the GPU: under five minutes, no packages of the analysis
  python -m benchmarks.overhead.light read OUT                      anywhere: the quality of the join

`record` times each job in turns without a profiler, inside `stepscope.profile` while that waits for its window, in a light
window, in a full one, and under the framework's own profiler with the options of the full one; then it records the job with
stepscope, and packs what that left into OUT/light_*.tar.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import stepscope
from benchmarks.overhead.light_jobs import JOBS, Step

ROUNDS = 8  # half of them in the opposite order
STEPS = 12
WARM_UP = 8
# Twelve steps of 90 µs would time a hiccup of the machine.
SHORTEST_TURN_S = 0.15
SECONDS_PER_TURN = 1.0
PLAN = stepscope.schedule(skip=36, warmup=2, active=6)
RECORDED_STEPS = 36 + 2 + 6 + 30
MODES = ("bare", "waiting", "light", "full", "own")
# A profiler whose window does not come, behind its first steps.
FAR = stepscope.schedule(skip=1_000_000)
FIRST_STEPS = 3


def record(out: Path) -> None:
    """Each framework in a process of its own: they share the GPU badly."""
    out.mkdir(parents=True, exist_ok=True)
    for framework in JOBS:
        command = [sys.executable, "-m", "benchmarks.overhead.light", "jobs", str(out), framework]
        code = subprocess.run(command, check=False).returncode
        if code:
            print(f"{framework}: ended with {code}")


def run_jobs(out: Path, framework: str) -> None:
    """Time and record all jobs of a framework; one that fails costs only itself."""
    out.mkdir(parents=True, exist_ok=True)
    __import__(framework)
    with tempfile.TemporaryDirectory() as folder:
        for make in JOBS[framework]:
            place = Path(folder) / make.__name__
            try:
                _job(framework, make(), place)
            except Exception as error:
                print(f"{make.__name__}: {type(error).__name__}: {error}")
        with tarfile.open(out / f"light_{framework}.tar", "w") as archive:
            archive.add(folder, framework)


def _job(framework: str, step: Step, place: Path) -> None:
    place.mkdir()
    for _ in range(WARM_UP):
        step()
    steps = max(STEPS, round(SHORTEST_TURN_S * 1e9 / _mean(framework, step, _NoMarks())))
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for number in range(ROUNDS):
        for mode in MODES if number % 2 else MODES[::-1]:
            gc.collect()  # the results of torch's own profiler: up to a second of the next turn
            with _OPENED[mode](framework) as marks:
                times[mode].append(_mean(framework, step, marks, steps))
    medians = {mode: statistics.median(found) for mode, found in times.items()}
    to_bare = {mode: _ratio(times[mode], times["bare"]) for mode in MODES[1:]}
    _record(framework, step, place)
    (place / "times.json").write_text(json.dumps({"medians": medians, "times": times}))
    ratios = "  ".join(f"{mode} {ratio:5.2f}×" for mode, ratio in to_bare.items())
    against = _ratio(times["full"], times["own"])
    print(
        f"{place.name:<18} {medians['bare'] / 1e6:9.3f} ms  {ratios}  full / own {against:5.3f}", flush=True
    )


def _ratio(times: list[float], others: list[float]) -> float:
    """The median over rounds, since a host that others use changes its speed less within one; the mean of both orders, since the
    first window after steps without one costs more."""
    ratios = [time / other for time, other in zip(times, others, strict=True)]
    return statistics.geometric_mean(statistics.median(ratios[start::2]) for start in (0, 1))


def _mean(framework: str, step: Step, marks: Any, steps: int = STEPS) -> float:
    """The mean of some steps between two waits for the device."""
    from stepscope.capture.backends.waits import wait_for_devices

    wait_for_devices((framework,))
    begin, done = time.perf_counter_ns(), 0
    for number in range(steps):
        marks.begin_step(number)
        step()
        marks.end_step()
        done += 1
        if time.perf_counter_ns() - begin > SECONDS_PER_TURN * 1e9:
            break
    wait_for_devices((framework,))
    return (time.perf_counter_ns() - begin) / done


def _record(framework: str, step: Step, place: Path) -> None:
    """With stepscope, as a user would."""
    with stepscope.Profiler(place, schedule=PLAN, backends=(framework,), packed=True) as prof:
        for _ in range(RECORDED_STEPS):
            step()
            prof.step()
    for twin in place.rglob("*.trace.json.gz"):
        if list(twin.parent.glob("*.xplane.pb")):
            twin.unlink()


class _NoMarks:
    """Steps that nobody marks."""

    def begin_step(self, number: int) -> None:
        """Nothing."""

    def end_step(self) -> None:
        """Nothing."""


@contextmanager
def _bare(_framework: str) -> Iterator[Any]:
    yield _NoMarks()


class _Waiting:
    """Steps of a Profiler that records nothing yet."""

    def __init__(self, prof: stepscope.Profiler) -> None:
        self._prof = prof

    def begin_step(self, number: int) -> None:
        """Nothing."""

    def end_step(self) -> None:
        """It ends."""
        self._prof.step()


@contextmanager
def _waiting(framework: str) -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        stepscope.Profiler(Path(folder), schedule=FAR, backends=(framework,)) as prof,
    ):
        warnings.simplefilter("ignore")  # that nothing was recorded
        for _ in range(FIRST_STEPS):
            prof.step()
        yield _Waiting(prof)


@contextmanager
def _collected(backend: Any, marks: Any) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        backend.warm_up(Path(folder))
        backend.start(Path(folder))
        try:
            yield marks
        except BaseException:
            backend.abandon()
            raise
        backend.stop()


@contextmanager
def _light(framework: str) -> Iterator[Any]:
    from stepscope.capture.backends import make_light
    from stepscope.capture.backends.base import Options

    backend = make_light((framework,), Options())
    if backend is None:
        raise RuntimeError("no GPU is in use")
    with _collected(backend, _NoMarks()) as marks:
        yield marks


@contextmanager
def _full(framework: str) -> Iterator[Any]:
    from stepscope.capture.backends import make
    from stepscope.capture.backends.base import Options
    from stepscope.capture.process.troubles import Troubles

    (backend,) = make((framework,), Options(), Troubles())
    with _collected(backend, backend) as marks:
        yield marks


@contextmanager
def _own(framework: str) -> Iterator[Any]:
    opened: Callable[[], Any] = _own_torch if framework == "torch" else _own_jax
    with opened() as marks:
        yield marks


@contextmanager
def _own_torch() -> Iterator[Any]:
    import torch

    config: Any = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with torch.profiler.profile(
        record_shapes=True, profile_memory=True, with_stack=True, with_flops=True, with_modules=True,
        experimental_config=config,
    ):  # fmt: skip
        yield _TorchMarks(torch.profiler.record_function)


@contextmanager
def _own_jax() -> Iterator[Any]:
    import jax

    options = jax.profiler.ProfileOptions()
    options.host_tracer_level, options.python_tracer_level, options.device_tracer_level = 2, 1, 1
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=options)
        try:
            yield _JaxMarks(jax.profiler.StepTraceAnnotation)
        finally:
            jax.profiler.stop_trace()


class _TorchMarks:
    """Steps as torch.profiler marks them."""

    def __init__(self, mark: Any) -> None:
        self._mark = mark
        self._open: Any = None

    def _made(self, number: int) -> Any:
        return self._mark(f"ProfilerStep#{number}")

    def begin_step(self, number: int) -> None:
        """A step begins."""
        self._open = self._made(number)
        self._open.__enter__()

    def end_step(self) -> None:
        """It ends."""
        self._open.__exit__(None, None, None)


class _JaxMarks(_TorchMarks):
    """Steps as jax.profiler marks them."""

    def _made(self, number: int) -> Any:
        return self._mark("train", step_num=number)


_OPENED = {"bare": _bare, "waiting": _waiting, "light": _light, "full": _full, "own": _own}


def read(out: Path) -> None:
    """The share of launches that were aligned, and the error of the replayed step against the un-profiled one."""
    print(
        f"{'job':<18} {'bare ms':>9} {'light':>6} {'full':>6} {'aligned':>8} {'factor':>7} {'host':>6} {'replay':>8} {'without':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(out.glob("light_*.tar")):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        for times in sorted(Path(folder).glob("*/*/times.json")):
            print(_quality(times.parent, json.loads(times.read_text())["medians"]), flush=True)


def _quality(place: Path, medians: dict[str, float]) -> str:
    from stepscope.analysis.context import RankContext
    from stepscope.analysis.options import Options
    from stepscope.analysis.replay.light import LightHost
    from stepscope.analysis.replay.unprofiled_host import plan
    from stepscope.trace.frames import take_median

    context = RankContext(0, stepscope.load(place, cache=False).traces[0], Options())
    bare = medians["bare"]
    text = f"{place.name:<18} {bare / 1e6:9.3f} {medians['light'] / bare:6.2f} {medians['full'] / bare:6.2f}"
    light = context.light
    if not isinstance(light, LightHost):
        told = context.whole_trace.info.capture.get("light") or {}
        return f"{text}  not joined: {light.reason if light is not None else told.get('reason')}"
    without = plan(context.trace, context.steps, context.critical_device).step_ns()
    played = context.plan.step_ns()
    # Of the join alone, before anything is fitted: near 1 where the host decides how long the step is, less elsewhere.
    host = take_median(light.steps["dispatch_light_ns"]) / bare
    return f"{text} {light.aligned:8.1%} {light.factor:7.2f} {host:6.2f} {played / bare - 1:+8.1%} {without / bare - 1:+8.1%}"


def main() -> None:
    """record OUT | read OUT."""
    what, out = sys.argv[1], Path(sys.argv[2])
    if what == "jobs":
        run_jobs(out, sys.argv[3])
    else:
        {"record": record, "read": read}[what](out)


if __name__ == "__main__":
    main()
