"""The `stepscope` command where only the recorder is installed, and the door to the whole one where that is, too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    from importlib.util import find_spec

    if find_spec("stepscope.cli") is not None:
        from importlib import import_module

        import_module("stepscope.cli").run()
        return
    from stepscope.capture.command.app import run_command

    sys.exit(run_command(sys.argv[1:]))
