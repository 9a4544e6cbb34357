"""`stepscope capture`: record from a job that is already running."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption


def capture(
    targets: Annotated[list[str] | None, typer.Argument(metavar="PID|ADDRESS …", help="Listening processes, or profiler servers as host:port; without any, list the listening processes.", show_default=False)] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Number of steps to record.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.001, help="Seconds to record from profiler servers, which have no steps.")] = 2.0,
    folder: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the profile.")] = Path("stepscope-out"),
    remote: Annotated[str | None, typer.Option("--remote", metavar="DIR", help="Let profiler servers write to this folder on their own machine instead of sending the profile.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", min=0.1, help="Maximum seconds to wait for the steps.")] = 300.0,
    stacks: Annotated[bool, typer.Option("--stacks", help="Show the Python stacks of all threads now, also of jobs that hang, instead of recording; the target `all` stands for every listening process.")] = False,
    no_stacks: Annotated[bool, typer.Option("--no-stacks", help="Do not record Python functions.")] = False,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Record from running jobs: jobs that called stepscope.listen() or were started with STEPSCOPE_LISTEN=1, and
    jobs with a TensorFlow or JAX profiler server. Several workers are recorded together.
    """
    with session(quiet, False, color) as talk:
        from stepscope.capture.command.capture import Wish, capture_from

        wish = Wish(steps, seconds, folder, remote, timeout, not no_stacks, stacks)
        raise typer.Exit(capture_from(targets or [], wish, talk))
