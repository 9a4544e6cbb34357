"""Jobs that share one import of a framework or a module of it: each is the fork of a process in which nothing but the import has happened.

For jobs that import stepscope themselves; what `stepscope run` attaches to while it is imported needs a process of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.capture.running import JOBS, PATIENCE_SECONDS, environment

# Of PyTorch, with what its first optimizer and anything compiled import besides.
DYNAMO = "torch._dynamo"


class Fork:
    """A running job, with as much of Popen as tests need."""

    def __init__(self, answers: IO[str], stdout: IO[str], errors: IO[str]) -> None:
        self.pid = int(answers.readline())
        self.returncode: int | None = None
        self.stdout = stdout
        self._answers = answers
        self._errors = errors

    def kill(self) -> None:
        """It is a child of the other process, which waits for it: its number is not given to others before."""
        os.kill(self.pid, signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        """All that it says, once it has ended."""
        with self._answers, self.stdout, self._errors:
            out = self.stdout.read()
            status = int(self._answers.readline())
            self.returncode = os.waitstatus_to_exitcode(status)
            self._errors.seek(0)
            return out, self._errors.read()


def start(module: str, job: str | Path, *arguments: object, **added: str) -> Fork:
    """The job, by the name of its script or its path, in a fork of a process that has imported the module."""
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE_SECONDS)
    reading, writing = os.pipe()
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the job)
    path = JOBS / f"{job}.py" if isinstance(job, str) else job
    words = [str(path), *map(str, arguments)]
    order = json.dumps({"words": words, "environment": environment(**added)}).encode()
    socket.send_fds(_parent(module), [order], [writing, errors.fileno(), theirs.fileno()])
    os.close(writing)
    theirs.close()
    with ours:
        return Fork(ours.makefile(), os.fdopen(reading), errors)


def told(module: str, job: str | Path, *arguments: object, **added: str) -> dict[str, Any]:
    """What the job says in the last line that it prints, as JSON."""
    started = start(module, job, *arguments, **added)
    out, err = started.communicate()
    assert started.returncode == 0, err[-4000:]
    answer = json.loads(out.strip().splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


@cache
def _parent(module: str) -> socket.socket:
    """One for all tests of this process, with which it ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, str(JOBS / "forks.py"), module, str(theirs.fileno())]
    process = subprocess.Popen(command, env=environment(), pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(PATIENCE_SECONDS)

    atexit.register(end)
    return ours
