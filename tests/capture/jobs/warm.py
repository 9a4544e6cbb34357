"""Jobs that share one import of a framework: each is the fork of a process in which nothing but the import has happened.

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
from typing import IO, Any

from tests.capture.running import JOBS, PATIENCE_SECONDS, environment


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


def start(framework: str, job: str, *arguments: object) -> Fork:
    """The job, by the name of its script, in a fork of a process that has imported the framework."""
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE_SECONDS)
    reading, writing = os.pipe()
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the job)
    words = json.dumps([str(JOBS / f"{job}.py"), *map(str, arguments)]).encode()
    socket.send_fds(_parent(framework), [words], [writing, errors.fileno(), theirs.fileno()])
    os.close(writing)
    theirs.close()
    with ours:
        return Fork(ours.makefile(), os.fdopen(reading), errors)


def told(framework: str, job: str, *arguments: object) -> dict[str, Any]:
    """What the job says in the last line that it prints, as JSON."""
    started = start(framework, job, *arguments)
    out, err = started.communicate()
    assert started.returncode == 0, err[-4000:]
    answer = json.loads(out.strip().splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


@cache
def _parent(framework: str) -> socket.socket:
    """One for all tests of this process, with which it ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, str(JOBS / "forks.py"), framework, str(theirs.fileno())]
    process = subprocess.Popen(command, env=environment(), pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(PATIENCE_SECONDS)

    atexit.register(end)
    return ours
