"""One run of the job in a process of its own, which ends after some steps."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stepscope.capture.launch.environment import HOOK
from stepscope.capture.trial.plan import Trial

_LAST_LINES = 8
_POLL_S = 0.02
_GRACE_S = 5.0  # for the other processes of a job whose first one has had enough steps
# Experiment trackers stay silent: a trial is no experiment of the user's.
_TRACKERS_OFF = {
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "AIM_DISABLED": "1",
}


class Timed(msgspec.Struct):
    """What the job wrote about itself."""

    ended: str = ""  # enough: of steps; ended: the job did, before
    steps: int = 0
    total_ns: int = 0
    lengths_ns: list[int] = []
    whole_ns: int = 0
    source: str | None = None
    losses: list[float | None] = []  # None: not finite
    peak_bytes: int | None = None
    changes: dict[str, str] = {}  # made: "", else why not
    redirected: int = 0


@dataclass(frozen=True)
class Ran:
    """How a run came out; `failure` says why it gives no figure, and `tail` is the end of what the job printed."""

    changes: tuple[str, ...]
    result: Timed = field(default_factory=Timed)
    failure: str = ""
    tail: tuple[str, ...] = ()

    @property
    def step_ns(self) -> float | None:
        """The mean step; of a job without a loop, all of it."""
        if self.failure:
            return None
        if self.result.steps:
            return self.result.total_ns / self.result.steps
        return float(self.result.whole_ns) if self.result.whole_ns else None


def run_once(
    command: Sequence[str],
    changes: Sequence[str],
    *,
    timeout_s: float,
    folder: Path,
    limits: Mapping[str, float],
) -> Ran:
    """Start the job with the changes, wait for it, and read its result."""
    with tempfile.TemporaryDirectory(prefix="stepscope-try-") as place:
        trial = Trial(
            result=str(Path(place) / "result.json"),
            scratch=str(Path(place) / "scratch"),
            changes=list(changes),
            **limits,  # type: ignore[arg-type]
        )
        env = job_environment(os.environ, Path(place)) | trial.variables()
        result = Path(trial.result)
        code, tail = wait_for(command, env, timeout_s, folder, lambda: _has_enough(result))
        return _judge(tuple(changes), _read(result), code, tail, timeout_s)


def job_environment(before: Mapping[str, str], place: Path) -> dict[str, str]:
    """The user's, with our hook first and trackers off."""
    path = os.pathsep.join(filter(None, (str(HOOK), before.get("PYTHONPATH"))))
    return {**before, **_TRACKERS_OFF, "MLFLOW_TRACKING_URI": (place / "mlflow").as_uri(), "PYTHONPATH": path}


def wait_for(
    command: Sequence[str],
    env: Mapping[str, str],
    timeout_s: float,
    folder: Path,
    is_done: Callable[[], bool] = bool,
) -> tuple[int | None, tuple[str, ...]]:
    """The exit code, None for a job that took too long, and its last lines.

    A job that `is_done` may have processes that wait for the one that has ended: they are ended too, and the code is 0.
    """
    with tempfile.TemporaryFile() as output:
        job = subprocess.Popen(
            command,
            env=dict(env),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=os.name == "posix",
        )
        try:
            code = _wait(job, timeout_s, is_done)
        finally:
            _end_group(job)
        output.seek(0)
        lines = deque(output, maxlen=_LAST_LINES)
    return code, tuple(line.decode("utf-8", "replace").rstrip() for line in lines)


def _wait(job: subprocess.Popen[bytes], timeout_s: float, is_done: Callable[[], bool]) -> int | None:
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        with suppress(subprocess.TimeoutExpired):
            code = job.wait(_POLL_S)
            return 0 if is_done() else code
        if is_done():
            with suppress(subprocess.TimeoutExpired):
                job.wait(_GRACE_S)
            return 0
    return None


def _has_enough(result: Path) -> bool:
    """Whether a process of the job has timed its steps; what becomes of the others does not matter then."""
    found = _read(result) if result.exists() else None
    return found is not None and found.ended == "enough"


def _end_group(job: subprocess.Popen[bytes]) -> None:
    """The job and whatever it started."""
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(job.pid, signal.SIGKILL)
        else:
            job.kill()
    job.wait()


def _read(path: Path) -> Timed | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Timed, strict=False)
    except (OSError, msgspec.MsgspecError):
        return None


def _judge(
    changes: tuple[str, ...], result: Timed | None, code: int | None, tail: tuple[str, ...], timeout_s: float
) -> Ran:
    if code is None:
        return Ran(changes, result or Timed(), f"did not end within {timeout_s:.0f} s", tail)
    if code != 0:
        return Ran(changes, result or Timed(), f"ended with exit code {code}", tail)
    if result is None:
        return Ran(changes, Timed(), "no Python process of the job could be watched", tail)
    missing = dict.fromkeys(changes, "its framework was not imported")
    reasons = {name: why for name, why in (missing | result.changes).items() if why}
    if reasons:
        # The row has the name of a change that is alone.
        words = reasons.values() if len(changes) == 1 else (f"{name}: {why}" for name, why in reasons.items())
        return Ran(changes, result, f"could not be applied: {'; '.join(words)}", ())
    return Ran(changes, result, "", ())
