"""What the machine did during the window: looked at when it opens, four times a second, and when it closes.

The driver is asked for its GPUs before the window opens: that takes milliseconds, during which it blocks other callers.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from stepscope.capture.process.guarded import guarded_thread

if TYPE_CHECKING:
    from stepscope.capture.machine.nvml import Nvml
    from stepscope.capture.ring.ring import Ring

INTERVAL_SECONDS = 0.25
# A window of 25 minutes; later samples would only make the sidecar large.
_MOST_SAMPLES = 6000
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes() -> int | None:
    """The memory of this process, where /proc has it."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


class _Host:
    """CPU use of this process and of the machine since the sample before."""

    def __init__(self) -> None:
        self._process = time.process_time_ns()
        self._wall = time.perf_counter_ns()
        self._machine = _machine_ticks()

    def sample(self) -> dict[str, Any]:
        process, wall, machine = time.process_time_ns(), time.perf_counter_ns(), _machine_ticks()
        passed = max(1, wall - self._wall)
        row: dict[str, Any] = {
            "cpu_percent": round(100 * (process - self._process) / passed, 1),
            "rss_bytes": resident_bytes(),
        }
        if machine and self._machine:
            busy, total = machine[0] - self._machine[0], machine[1] - self._machine[1]
            row["machine_cpu_percent"] = round(100 * busy / max(1, total), 1)
        self._process, self._wall, self._machine = process, wall, machine
        return row


def _machine_ticks() -> tuple[int, int] | None:
    """Busy and all ticks of all CPUs."""
    try:
        with open("/proc/stat", "rb") as file:  # noqa: PTH123
            ticks = [int(field) for field in file.readline().split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


class Telemetry:
    """Samples while a window is open. Never raises."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._gpus: Nvml | None = None
        self._gpu_facts: list[dict[str, Any]] = []
        self._host = _Host()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._ring: Ring | None = None

    @property
    def gpu_facts(self) -> list[dict[str, Any]]:
        """The GPUs that were found."""
        return self._gpu_facts

    def prepare(self) -> None:
        """Find the GPUs, before the window: a short one would be over before the driver has answered."""
        try:
            from stepscope.capture.machine import nvml  # and with it ctypes

            self._gpus = nvml.shared()
            self._gpu_facts = self._gpus.facts()
        except Exception:  # no driver, or one of a strange version: the host alone
            self._gpus = None

    def before(self) -> None:
        """The first sample; the next ones measure the use of CPUs since this one."""
        self._look({"rss_bytes": resident_bytes()})
        self._host = _Host()

    def keep_in(self, ring: Ring) -> None:
        """Samples go there, too."""
        self._ring = ring
        for row in self._rows:
            ring.look(row)

    def start(self) -> None:
        """Begin to look from time to time."""
        self._thread = guarded_thread(self._run, "stepscope-telemetry")

    def stop(self) -> dict[str, Any]:
        """Look for the last time; all samples."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=1)
        self._look(self._host.sample())
        rows = list(self._rows)
        return {"interval_ns": int(INTERVAL_SECONDS * 1e9), "gpus": self._gpu_facts, "samples": rows}

    def _run(self) -> None:
        while not self._done.wait(INTERVAL_SECONDS) and len(self._rows) < _MOST_SAMPLES:
            self._look(self._host.sample())

    def _look(self, host: dict[str, Any]) -> None:
        row = {"unix_ns": time.time_ns(), **host}
        if self._gpus is not None:
            try:
                row["gpus"] = self._gpus.sample()
            except Exception:  # the driver is going away
                self._gpus = None
        self._rows.append(row)
        if self._ring is not None:
            self._ring.look(row)
