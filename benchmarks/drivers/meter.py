"""The stop-watch of all drivers: seconds of one call, and the most memory the process ever held."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any


def peak_bytes() -> int:
    """The largest resident size of this process so far.

    VmHWM belongs to this program alone; ru_maxrss, the fallback, can be inherited from the one that started it.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def report(call: Callable[[str], dict[str, Any]], wait: Callable[[], None] | None = None) -> None:
    """Time the call on the path given on the command line, and print one line of JSON: everything is imported by now.

    `wait` returns when all that the call left running is done; until then it is timed, and memory counted, on its own.
    """
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    base = peak_bytes()
    start, cpu_start = time.perf_counter(), time.process_time()
    says = call(sys.argv[1])
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    found = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_bytes": peak_bytes(),
        "base_bytes": base,
        "says": says,
    }
    if wait is not None:
        wait()
        says |= {"settled_seconds": time.perf_counter() - start, "settled_peak_bytes": peak_bytes()}
    sys.stdout.write("\n" + json.dumps(found) + "\n")
