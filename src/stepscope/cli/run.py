"""`stepscope run`: record some steps of a job without editing it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.capture.command.run import DEFAULT_FOLDER, DEFAULT_STEPS
from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption

# What follows belongs to the job, whatever it looks like.
SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def run(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND …", help="python train.py …, torchrun …, accelerate launch …, or -m module …", show_default=False)] = None,
    steps: Annotated[str, typer.Option("--steps", metavar="A:B", help="Steps to record, inclusive; the first step is 0.")] = DEFAULT_STEPS,
    folder: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the profile.")] = Path(DEFAULT_FOLDER),
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=0, help="Number of windows to record, each as far after the one before as the first is after the start; 0: until the job ends.")] = 1,
    keep: Annotated[str, typer.Option("--keep", metavar="N", help="How many windows of a process stay, the newest; all for all of them. By default all, with --repeat 0 the newest 50, at most 4 GiB.")] = "newest",
    module: Annotated[bool, typer.Option("-m", help="The command is a Python module.")] = False,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Do not record allocations.")] = False,
    no_shapes: Annotated[bool, typer.Option("--no-shapes", help="Do not record input shapes.")] = False,
    no_stacks: Annotated[bool, typer.Option("--no-stacks", help="Do not record Python functions.")] = False,
    no_light: Annotated[bool, typer.Option("--no-light", help="Do not record a light window, of launches alone, before the full one.")] = False,
    settings: Annotated[Path | None, typer.Option("--with", metavar="FILE", help="Apply the changes that stepscope try wrote.")] = None,
    listen: Annotated[bool, typer.Option("--listen", help="Also allow `stepscope capture` to record from the job at any time.")] = False,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Run a training job and record some of its steps, without editing it.

    The training loop is detected by optimizer steps, data loaders, Keras batches, JAX step markers or calls of stepscope.step().
    Arguments, signals and the terminal are passed on to the job, and its exit code becomes the exit code.
    """
    from stepscope.capture.command.run import (
        Job,
        WrongUsage,
        command_of,
        end_like,
        keep_of,
        record,
        steps_of,
    )

    options = {
        "memory": not no_memory,
        "shapes": not no_shapes,
        "stacks": not no_stacks,
        "light": not no_light,
    }
    try:
        job = Job(
            words=command_of([*(["-m"] if module else []), *(command or [])]),
            steps=steps_of(steps),
            folder=folder,
            repeat=repeat,
            options={**options, "keep": keep_of(keep)},
            listen=listen,
            settings=settings,
        )
    except WrongUsage as error:
        raise typer.BadParameter(str(error)) from None
    with session(quiet, False, color) as talk:
        code = record(job, talk)
    raise typer.Exit(end_like(code))
