"""The `stepscope` command: one file per command."""

from __future__ import annotations

import gc
import io
import os
import sys

# A report makes few circles and soon ends: to look for them as often as Python does takes a twentieth of a short one.
OBJECTS_BETWEEN_COLLECTIONS = 100_000
# How Polars gets its memory, read when it is imported: what was given back stays with the process, which soon wants it again.
# To return pages every half second and to have them cleared anew costs a quarter of all page faults of a report.
_MEMORY, _KEEP = "_RJEM_MALLOC_CONF", "dirty_decay_ms:-1"


def run() -> None:
    """`main` of a process that does nothing else."""
    if sys.argv[1:2] == ["report"]:
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        os.environ.setdefault(_MEMORY, _KEEP)
    main()
    from stepscope.cli.start.leave import leave

    leave()


def main() -> None:
    """Run the command line; a command that says more than whether it succeeded ends with SystemExit."""
    _make_streams_usable()
    from stepscope.cli.start.short import run_short

    if run_short(sys.argv[1:]):
        return
    from stepscope.cli.app import app

    app(prog_name="stepscope")


def _make_streams_usable() -> None:
    """Write to nowhere where a stream is closed, and escapes where its encoding lacks a character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
