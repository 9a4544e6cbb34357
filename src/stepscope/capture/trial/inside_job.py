"""Times the steps of a job in a trial, and ends the process when there are enough of them."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from stepscope.capture.backends.waits import wait_for_devices
from stepscope.capture.loop.loop import Loop
from stepscope.capture.loop.sources import watch
from stepscope.capture.process.on_import import after_import
from stepscope.capture.trial.changes import Check, apply_changes
from stepscope.capture.trial.losses import Losses
from stepscope.capture.trial.plan import Trial, settings_of, trial_of
from stepscope.capture.trial.scratch import Scratch

_FRAMEWORKS = ("torch", "tensorflow", "jax")
_trial: InTrial | None = None


def begin_trial() -> bool:
    """Called at the start of every process of the job; whether this one is in a trial."""
    global _trial
    trial = trial_of(os.environ)
    if trial is None or _trial is not None:
        return trial is not None
    _trial = InTrial(trial)
    _trial.start()
    return True


def apply_settings() -> None:
    """Of `stepscope run --with`: changes that a trial showed to be worth it."""
    names = settings_of(os.environ)
    if names:
        apply_changes(names, _say_refusal)


def _say_refusal(name: str, why: str) -> None:
    if why:
        sys.stderr.write(f"stepscope: {name} could not be applied: {why}\n")


class InTrial:
    """One process of the job. The first that shows a loop writes the result."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._loop = Loop(self._begin, self._step)
        self._losses = Losses()
        self._scratch = Scratch(trial.scratch)
        self._applied: dict[str, str] = {}
        self._checks: dict[str, Check] = {}
        self._number = 0
        self._began_ns = 0
        self._moments: list[int] = []
        self._is_over = False
        self._pid = os.getpid()
        self._born_ns = time.perf_counter_ns()

    def start(self) -> None:
        """Make the changes when their frameworks are imported, and watch for a loop."""
        watch(lambda: None if self._is_over or os.getpid() != self._pid else self._loop)
        self._losses.watch()
        self._scratch.watch()
        self._checks = apply_changes(self._trial.changes, self._applied.__setitem__)
        after_import("stepscope.capture.process.active", self._hear_calls)
        atexit.register(self._leave)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._continue_in_child)

    def _continue_in_child(self) -> None:
        """A job may train in a process that it forks. Where the parent has steps already, the child is a worker."""
        if self._number == 0 and not self._is_over:
            self._pid = os.getpid()
            self._loop = Loop(self._begin, self._step)

    def _hear_calls(self, active: Any) -> None:
        active.first_step = self._called

    def _called(self) -> None:
        if not self._is_over and os.getpid() == self._pid and self._loop.called():
            self._step()

    def _begin(self) -> None:
        """The loop begins; or a surer source reports its steps, and counting starts anew."""
        self._number, self._moments = 0, []

    def _step(self) -> None:
        if self._is_over or os.getpid() != self._pid:
            return
        self._number += 1
        if self._number == self._trial.warmup:
            self._wait()
            self._began_ns = time.perf_counter_ns()
        elif self._number > self._trial.warmup:
            self._moments.append(time.perf_counter_ns())
            if self._is_enough():
                self._finish("enough")

    def _is_enough(self) -> bool:
        trial, seconds = self._trial, (self._moments[-1] - self._began_ns) / 1e9
        return seconds >= trial.most_s or (len(self._moments) >= trial.steps and seconds >= trial.least_s)

    def _finish(self, why: str) -> None:
        """Write the result and end the process: what the job would do next is not of interest."""
        self._is_over = True
        self._wait()
        self._write(why, time.perf_counter_ns())
        end_process()

    def _leave(self) -> None:
        """The job ends by itself, before there were enough steps."""
        if self._is_over or os.getpid() != self._pid or _is_worker():
            return
        self._is_over = True
        self._wait()
        self._write("ended", time.perf_counter_ns())

    def _wait(self) -> None:
        wait_for_devices(_FRAMEWORKS)

    def _write(self, why: str, end_ns: int) -> None:
        count = len(self._moments)
        result = {
            "ended": why,
            "steps": count,
            "total_ns": end_ns - self._began_ns if count else 0,
            "lengths_ns": [
                b - a for a, b in zip([self._began_ns, *self._moments], self._moments, strict=False)
            ],
            "whole_ns": end_ns - self._born_ns,
            "source": self._loop.source,
            "losses": self._losses.values(),
            "peak_bytes": _peak_bytes(),
            "changes": self._applied | _why_without_effect(self._checks),
            "redirected": self._scratch.redirected,
        }
        path = Path(self._trial.result)
        if path.exists() and (count == 0 or why == "ended"):
            return  # another process of the job has the loop, or has had enough of it
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(result, default=str), encoding="utf-8")
        draft.replace(path)


def end_process() -> None:
    """At once, without what the job does at its end: it may save, upload or evaluate."""
    _end_children()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed by the job
            pass
    os._exit(0)


def _why_without_effect(checks: dict[str, Check]) -> dict[str, str]:
    """Of changes that were made but met nothing in the job that they could change."""
    found = {}
    for name, check in checks.items():
        try:
            found[name] = check()
        except Exception as error:  # another version of the framework
            found[name] = f"{type(error).__name__}: {error}"
    return found


def _is_worker() -> bool:
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.current_process().name != "MainProcess"


def _end_children() -> None:
    """Workers of loaders would outlive a process that ends without cleaning up."""
    processes = sys.modules.get("multiprocessing.process")
    for child in list(getattr(processes, "_children", ())):
        try:
            child.terminate()
        except Exception:  # ended already
            pass


def _peak_bytes() -> int | None:
    """The most memory: of the device where PyTorch knows it, else of the process."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            return int(torch.cuda.max_memory_allocated())
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak) * (1 if sys.platform == "darwin" else 1024)
    except Exception:  # no such module on Windows
        return None
