"""`stepscope run`: record some steps of a job without editing it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color, Talk, session
from stepscope.cli.options import ColorOption, QuietOption

DEFAULT_STEPS = "10:15"
COMMAND_NOT_FOUND, COMMAND_NOT_RUNNABLE = 127, 126
# What follows belongs to the job, whatever it looks like.
SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def steps_of(text: str) -> tuple[int, int]:
    """`10:15` is the steps 10 to 15, both included; `10` is one, `:5` begins with the first."""
    match = re.fullmatch(r"(\d{0,9})(:)?(\d{1,9})?", text.strip())
    if match is None or not (match[1] or match[3]):
        raise typer.BadParameter(f"invalid step range {text!r}; write for example 10:15")
    first = int(match[1] or 0)
    if match[2] and not match[3]:
        raise typer.BadParameter("the range has no end; write for example 10:15")
    last = int(match[3]) if match[2] else first
    if last < first:
        raise typer.BadParameter(f"the range {text!r} ends before it starts")
    return first, last


def keep_of(text: str) -> int | str | None:
    """As `Profiler` takes it: a number of windows, None for all, or its own default."""
    if text == "newest":
        return text
    if text == "all":
        return None
    if re.fullmatch(r"[1-9]\d{0,8}", text) is None:
        raise typer.BadParameter(f"{text!r} is not a number of windows: use 10, or all")
    return int(text)


def command_of(words: list[str]) -> list[str]:
    """`-m module` and `script.py` run under this Python; anything else is a command."""
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        raise typer.BadParameter("no command given; write for example: stepscope run -- python train.py")
    script = Path(words[0])
    if words[0] == "-m" or (script.suffix == ".py" and script.is_file() and not os.access(script, os.X_OK)):
        return [sys.executable, *words]
    return words


def run(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND …", help="python train.py …, torchrun …, accelerate launch …, or -m module …", show_default=False)] = None,
    steps: Annotated[str, typer.Option("--steps", metavar="A:B", help="Steps to record, inclusive; the first step is 0.")] = DEFAULT_STEPS,
    folder: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the profile.")] = Path("stepscope-out"),
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
    import tempfile

    from stepscope.capture.launch.environment import Plan, environment, read_notes
    from stepscope.cli.run_outcome import outcome

    first, last = steps_of(steps)
    kept = keep_of(keep)
    words = command_of([*(["-m"] if module else []), *(command or [])])
    with session(quiet, False, color) as talk, tempfile.TemporaryDirectory(prefix="stepscope-run-") as notes:
        options = {"memory": not no_memory, "shapes": not no_shapes, "stacks": not no_stacks, "keep": kept}
        options["light"] = not no_light
        plan = Plan(str(folder.absolute()), first, last, notes, options, repeat)
        code = _ended(talk, words, environment(plan, os.environ, listen=listen) | _changes(settings))
        result = outcome(plan, list(read_notes(Path(notes))), shlex.quote(str(folder)), words, code)
        (talk.note if result.is_good else talk.warn)(result.text)
    _end_like(code)


def _changes(settings: Path | None) -> dict[str, str]:
    """For the environment of the job: what a trial found to be worth it."""
    if settings is None:
        return {}
    import json

    from stepscope.capture.trial.plan import WITH
    from stepscope.trial.settings import read_settings

    return {WITH: json.dumps(read_settings(settings))}


def _ended(talk: Talk, words: list[str], env: dict[str, str]) -> int:
    from stepscope.cli.supervise import supervise

    try:
        return supervise(words, env)
    except FileNotFoundError:
        talk.fail(f"Command not found: {words[0]}", "Check its name, or give its path.")
        raise typer.Exit(COMMAND_NOT_FOUND) from None
    except PermissionError:
        talk.fail(
            f"{words[0]} is not executable.",
            f"For a Python script: stepscope run -- python {shlex.quote(words[0])}",
        )
        raise typer.Exit(COMMAND_NOT_RUNNABLE) from None


def _end_like(code: int) -> None:
    """Exit with the job's exit code, or by the signal that ended it."""
    if code < 0:
        from stepscope.cli.supervise import end_by_signal

        end_by_signal(-code)
    raise typer.Exit(code)
