"""The `stepscope` command: one file per verb."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    from stepscope.cli.app import app

    app(prog_name="stepscope")
