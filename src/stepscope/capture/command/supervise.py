"""Runs a command as if it had been started in our place: same terminal, same signals, same end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

_PASSED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
# The terminal sends these to every process in the foreground: the job has got them already.
_FROM_TERMINAL = (signal.SIGINT, getattr(signal, "SIGQUIT", signal.SIGINT))


def supervise(command: Sequence[str], env: Mapping[str, str]) -> int:
    """The exit code of the command; negative for the signal that ended it."""
    if hasattr(signal, "sigwaitinfo"):
        return _by_waiting(command, env)
    return _by_handlers(command, env)


def _by_waiting(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Fetch signals one by one, each with its sender, so that none is lost in between."""
    awaited = {*_PASSED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        job = subprocess.Popen(
            command, env=env, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)
        )
        while job.poll() is None:
            got = signal.sigwaitinfo(awaited)
            if got.si_signo != signal.SIGCHLD and not _was_sent_to_all(got):
                _pass_on(job, got.si_signo)
        return job.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _was_sent_to_all(got: signal.struct_siginfo) -> bool:
    """Whether the kernel sent it to the whole foreground on behalf of the terminal, not a process to us alone."""
    return got.si_signo in _FROM_TERMINAL and got.si_code > 0


def _pass_on(job: subprocess.Popen[bytes], number: int) -> None:
    try:
        job.send_signal(number)
    except ProcessLookupError:  # it has just ended
        pass


def _by_handlers(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Where the sender of a signal is unknown: signals of a terminal's keys are left to the terminal."""
    job = subprocess.Popen(command, env=env)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if not (number in _FROM_TERMINAL and sys.stdin is not None and sys.stdin.isatty()):
            _pass_on(job, number)

    kept = {number: signal.signal(number, pass_on) for number in _PASSED}
    try:
        return job.wait()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def end_by_signal(number: int) -> None:
    """End as the job ended, so that the parent process sees the same. No second core file is written."""
    import resource

    sys.stdout.flush()
    sys.stderr.flush()
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):  # SIGKILL has no handler
        pass
    os.kill(os.getpid(), number)
    os._exit(128 + number)
