"""Stacks of a job that hangs inside C: on a signal that it does not use, faulthandler writes them without Python's lock.

The file beside the socket is named after the process, the signal and the start of the process: the sender can be sure that it is
caught, since one that is not caught would end the job.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
from pathlib import Path
from typing import IO, Any

from stepscope.capture.process.clock import process_start_ticks

ENDING = ".stacks"
_KEPT_FREE = 8  # below the last real-time signal, where libraries look for one, too


class StackSignal:
    """The signal of one process, while it listens."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._number = 0

    def open(self, folder: Path) -> None:
        """Choose a signal and catch it. Nothing happens where the system does not show the signals in use."""
        number = choose_signal()
        if number is None:
            return
        pid = os.getpid()
        path = folder / f"{pid}.{number}.{process_start_ticks()}{ENDING}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file, self._path, self._number = os.fdopen(descriptor, "wb", buffering=0), path, number
        faulthandler.register(number, self._file, all_threads=True, chain=False)

    def close(self) -> None:
        """Leave the signal as it was."""
        if self._file is None:
            return
        faulthandler.unregister(self._number)
        self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._file = self._path = None

    def forget_in_child(self) -> None:
        """The file is the parent's; a child that listens opens its own."""
        self._path = None
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self.close()


def choose_signal() -> int | None:
    """A real-time signal that nothing in this process catches, ignores or blocks; None if there is none."""
    last, first = getattr(signal, "SIGRTMAX", None), getattr(signal, "SIGRTMIN", None)
    masks = read_masks("self")
    if last is None or first is None or masks is None:
        return None
    for number in range(int(last) - _KEPT_FREE, int(first), -1):
        is_default = signal.getsignal(number) == signal.SIG_DFL
        if is_default and not any(is_in(mask, number) for mask in masks.values()):
            return number
    return None


def read_masks(pid: object) -> dict[str, int] | None:
    """Which signals a process blocks, ignores and catches; None where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines if line.startswith("Sig"))
        return {name: int(found[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt")}
    except (OSError, ValueError, KeyError):
        return None


def is_in(mask: int, number: int) -> bool:
    """Whether the signal is in the mask."""
    return bool(mask >> (number - 1) & 1)


def read_stat(pid: object) -> Any:
    """When the process began, as the system counts; None where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
