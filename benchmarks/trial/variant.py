"""The other end of a worker: starts it, asks it, and ends it with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pipe
from typing import Any

from benchmarks.trial.jobs import Spec


class JobFailed(Exception):
    """The job crashed, raised or took too long."""


class Variant:
    """A variant of a job, in a process that is started at once and asked later."""

    def __init__(self, spec: Spec, name: str) -> None:
        self.name, self.deadline = name, float("inf")
        self._is_ready = False
        self._connection, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, open as long as the process
        command = [sys.executable, "-m", "benchmarks.trial.worker", str(theirs.fileno()), spec.text(), name]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},  # two share the device
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        theirs.close()

    def ask(self, command: str, *arguments: object) -> Any:
        """Have it done, and wait for the answer until the deadline."""
        self.tell(command, *arguments)
        return self.answer(command)

    def tell(self, command: str, *arguments: object) -> None:
        """Have it done, and ask for the `answer` later."""
        if not self._is_ready:
            self.answer("import")
            self._is_ready = True
        try:
            self._connection.send((command, arguments))
        except OSError:
            raise self._failure(command, "the process ended") from None

    def answer(self, command: str) -> Any:
        """What came of the command."""
        try:
            if not self._connection.poll(max(0.0, self.deadline - time.monotonic())):
                raise self._failure(command, "took too long")
            good, value = self._connection.recv()
        except (EOFError, OSError):
            raise self._failure(command, "the process ended") from None
        if not good:
            raise JobFailed(f"{self.name}: {value}")
        return value

    def _failure(self, command: str, why: str) -> JobFailed:
        return JobFailed(f"{self.name}: {command}: {why} {self.log_tail()}".strip())

    def log_tail(self) -> str:
        """The last line that the job printed."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def close(self) -> None:
        """Ask for nothing more: the process ends by itself if it can."""
        self._connection.close()

    def end(self) -> None:
        """End the process and those it started; workers of a loader outlive a parent that is killed alone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self.deadline < time.monotonic() else 2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()
