"""One variant of a job in a process of its own, which does as it is asked through a pipe.

Two processes a job: a fix may set a global option of its framework, and what the fixed variant holds (memory, loader
processes) must not be in the recording of the slow one.
"""

from __future__ import annotations

import itertools
import json
import sys
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.job import Step
from benchmarks.trial import recording, timing
from benchmarks.trial.jobs import Spec, TrialJob, load


class Worker:
    """What can be asked of a variant; each method is a command."""

    def __init__(self, spec: Spec, fixed: bool) -> None:
        self.spec, self.fixed = spec, fixed
        self.numbers = itertools.count()
        self.mean = 0.0
        self.job: TrialJob
        self.step: Step

    def load(self) -> dict[str, Any]:
        """Import the job; what is known of it."""
        self.job = load(self.spec)
        return self.job.facts()

    def versions(self) -> dict[str, str]:
        """What it runs on."""
        return _versions(self.job.framework)

    def build(self) -> None:
        """Make model and data. Nothing runs yet: the other variant may be busy, and tuning wants the device alone."""
        self.step = self.job.build(self.fixed)

    def warm_up(self) -> float:
        """Seconds a step, warm."""
        self.mean = timing.warm_up(self.step, self.finish, self.numbers)
        return self.mean

    def time_round(self, seconds: float) -> int:
        """Nanoseconds a step, free-running."""
        workers = _loader_workers()
        timing.settle(self.step, self.finish, self.numbers, self.mean, workers)
        count = timing.count_steps(self.mean, seconds, workers=workers)
        return round(1e9 * timing.time_steps(self.step, self.finish, self.numbers, count))

    def time_waited(self) -> int:
        """Nanoseconds a step, with a wait after each."""
        return round(1e9 * timing.time_waited(self.step, self.finish, self.numbers, self.mean))

    def record_ours(self, folder: str) -> list[str]:
        """By stepscope."""
        return recording.record_ours(self.step, self.numbers, Path(folder), self.mean, _loader_workers())

    def record_framework(self, folder: str) -> None:
        """By the framework's profiler alone."""
        record = {
            "torch": recording.record_torch,
            "jax": recording.record_jax,
            "tensorflow": recording.record_tensorflow,
        }[self.job.framework]
        record(self.step, self.finish, self.numbers, Path(folder))

    def finish(self) -> None:
        """Wait for the device."""
        _FINISH[self.job.framework]()


def _finish_torch() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _finish_jax() -> None:
    """Programs of a GPU run in order; on the CPU they may overtake each other."""
    import jax

    jax.effects_barrier()
    if jax.default_backend() == "cpu":
        jax.block_until_ready(jax.live_arrays())
    else:
        (jax.device_put(0.0) + 0).block_until_ready()


def _finish_tensorflow() -> None:
    """Ops of a device run in order; eager ops of the CPU have ended when they return."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        tf.constant(0.0).numpy()


_FINISH = {"torch": _finish_torch, "jax": _finish_jax, "tensorflow": _finish_tensorflow}


def _versions(framework: str) -> dict[str, str]:
    if framework == "torch":
        import torch

        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        return {"torch": torch.__version__, "device": device}
    if framework == "tensorflow":
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        return {"tensorflow": tf.__version__, "device": devices[0].name if devices else "cpu"}
    import jax

    return {"jax": jax.__version__, "device": jax.devices()[0].device_kind}


def _loader_workers() -> int:
    from stepscope.capture.unprofiled import workers_in_use

    return workers_in_use()


def serve(connection: Connection, worker: Worker) -> None:
    """Answer commands until the other end is closed; a failure is an answer, too."""
    while True:
        try:
            command, arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, getattr(worker, command)(*arguments)))
        except Exception as error:
            traceback.print_exc()
            connection.send((False, f"{command}: {type(error).__name__}: {error}"[:400]))


def main(handle: int, text: str, variant: str) -> None:
    """Import the framework at once, which needs no device: the process may be started while another job is measured."""
    connection, spec = Connection(handle), Spec(**json.loads(text))
    if spec.framework:
        try:
            import_module(spec.framework)
        except Exception as error:
            connection.send((False, f"import: {type(error).__name__}: {error}"[:400]))
            return
    connection.send((True, None))
    serve(connection, Worker(spec, variant == "fixed"))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
