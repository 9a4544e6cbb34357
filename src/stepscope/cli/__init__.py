"""The `stepscope` command: one file per command."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    _make_streams_usable()
    from stepscope.cli.short import run_short

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
