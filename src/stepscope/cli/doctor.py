"""`stepscope doctor`: why a profile is missing, empty or wrong, and the exact fix."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, NoCacheOption, QuietOption, RunOption, VerboseOption
from stepscope.cli.output import send

FAILED = 3


class Format(str, Enum):
    """Output format."""

    text = "text"
    json = "json"


def doctor(
    path: Annotated[str | None, typer.Argument(metavar="[PATH|train.py]", help="Profile, folder that should hold one, or training script; without it, this machine is examined.", show_default=False)] = None,
    output_format: Annotated[Format, typer.Option("--format", help="Output format: text, or JSON for programs.")] = Format.text,
    python: Annotated[str | None, typer.Option("--python", metavar="PYTHON", help="Interpreter to examine; default: the one that runs stepscope.")] = None,
    logdir: Annotated[str, typer.Option("--logdir", metavar="DIR", help="Folder that profiles will be written to.")] = ".",
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Find out what is wrong with this machine, a training script or a profile, and how to fix it.

    Scripts are parsed, never run. The exit code is 3 if a check fails; notes do not count.
    """
    with session(quiet, verbose, color) as talk:
        from stepscope.doctor.diagnose import diagnose

        with talk.progress("Reading") as progress:
            found = diagnose(
                path, python=python, folder=logdir, cache=not no_cache, run=run, progress=progress
            )
        if output_format is Format.json:
            import msgspec

            send(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n", sys.stdout.buffer)
        else:
            from stepscope.cli.table import terminal_width
            from stepscope.doctor.text import lines

            for line in lines(found, verbose=verbose, width=terminal_width()):
                talk.out.print(line)
        sys.stdout.flush()
        if found.failures:
            raise typer.Exit(FAILED)
