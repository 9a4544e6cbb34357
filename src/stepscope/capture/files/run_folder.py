"""One run folder for all workers of a job, without talking to each other: the file system decides who names it.

The first worker to finish a window writes a marker with the name of the run, by an operation of which only one can succeed;
the others find it and join. A rank joins a marker once: when a job with the same launcher settings runs again, its ranks find
their places taken and make the next marker. Workers on their own need no marker.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from stepscope.capture.files.identity import Identity
from stepscope.capture.process.clock import process_start_unix_ns

MARKERS = ".stepscope-runs"
# Clocks of hosts and of the file server may differ by this much.
_SKEW_NS = 60 * 1_000_000_000
_TRIES = 1000


@dataclass(frozen=True)
class RunName:
    """The name of the folder under plugins/profile, and what identifies this run."""

    folder: str
    unique: str


def new_run() -> RunName:
    """A run of its own, named by the second as TensorFlow and JAX do."""
    folder = time.strftime("%Y_%m_%d_%H_%M_%S")
    return RunName(folder, f"{folder}-{secrets.token_hex(4)}")


def run_of(target: Path, who: Identity, window: int) -> RunName:
    """The run that this worker's window belongs to."""
    if not who.job:
        return new_run()
    try:
        return _joined(target / MARKERS, who, window)
    except OSError:
        return new_run()


def _joined(markers: Path, who: Identity, window: int) -> RunName:
    markers.mkdir(parents=True, exist_ok=True)
    started = process_start_unix_ns() - _SKEW_NS
    for attempt in range(_TRIES):
        marker = markers / f"{who.job}-{window}-{attempt}"
        run = _made_or_found(marker)
        if marker.stat().st_mtime_ns < started:
            continue  # of an earlier job
        try:
            place = who.rank if who.rank is not None else who.worker
            os.close(os.open(f"{marker}.{place}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            continue
        return run
    return new_run()


def _made_or_found(marker: Path) -> RunName:
    """Linking a whole file into place succeeds for one worker only, and no reader ever sees half of it."""
    if not marker.exists():
        run = new_run()
        mine = marker.with_name(f".{marker.name}.{secrets.token_hex(6)}")
        mine.write_text(json.dumps([run.folder, run.unique]))
        try:
            os.link(mine, marker)
            return run
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not marker.exists():
                mine.rename(marker)
                return run
        finally:
            mine.unlink(missing_ok=True)
    folder, unique = json.loads(marker.read_text())
    return RunName(str(folder), str(unique))
