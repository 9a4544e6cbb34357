"""The command line of the recorder alone: `run` and `capture`, with the options that the whole of stepscope gives them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from stepscope import __version__
from stepscope.capture.command.capture import (
    DEFAULT_SECONDS,
    DEFAULT_TIMEOUT,
    Wish,
    capture_from,
)
from stepscope.capture.command.capture import DEFAULT_STEPS as CAPTURED_STEPS
from stepscope.capture.command.run import (
    DEFAULT_FOLDER,
    DEFAULT_STEPS,
    Job,
    WrongUsage,
    command_of,
    end_like,
    keep_of,
    record,
    steps_of,
)
from stepscope.capture.command.talk import PlainTalk
from stepscope.errors import StepscopeError, not_installed

INTERRUPTED, WRONG_USAGE = 130, 2
_HELP = """Usage: stepscope [-h] [-V] COMMAND …

The recorder of stepscope alone (stepscope-capture).

  run      Run a training job and record some of its steps, without editing it.
  capture  Record from jobs that are already running.

`stepscope COMMAND --help` shows the options of a command. For reports and all other commands: pip install stepscope
"""


def run_command(arguments: Sequence[str]) -> int:
    """The exit code."""
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help"):
        sys.stdout.write(_HELP)
        return 0 if arguments else WRONG_USAGE
    if first in ("-V", "--version"):
        sys.stdout.write(f"stepscope {__version__} (stepscope-capture)\n")
        return 0
    commands: dict[str, Callable[[Sequence[str]], int]] = {"run": _run, "capture": _capture}
    if first in commands:
        return commands[first](arguments[1:])
    error = not_installed(f"`stepscope {first}`")
    PlainTalk().fail(error.what, error.fix)
    return WRONG_USAGE


def run_parser() -> argparse.ArgumentParser:
    """The options of `stepscope run`."""
    parser = argparse.ArgumentParser(
        "stepscope run",
        usage="stepscope run [OPTIONS] -- COMMAND …",
        description="Run a training job and record some of its steps, without editing it.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("command", nargs=argparse.REMAINDER, help="python train.py …, torchrun …, or -m module …")
    add(
        "--steps",
        metavar="A:B",
        default=DEFAULT_STEPS,
        help="steps to record, inclusive; the first step is 0",
    )
    add(
        "-o",
        "--output",
        metavar="DIR",
        type=Path,
        default=Path(DEFAULT_FOLDER),
        help="folder for the profile",
    )
    add("--repeat", metavar="N", type=_whole(0), default=1, help="number of windows; 0: until the job ends")
    add(
        "--keep",
        metavar="N",
        default="newest",
        help="how many windows of a process stay; all for all of them",
    )
    add("-m", action="store_true", help="the command is a Python module")
    add("--no-memory", action="store_true", help="do not record allocations")
    add("--no-shapes", action="store_true", help="do not record input shapes")
    add("--no-stacks", action="store_true", help="do not record Python functions")
    add("--no-light", action="store_true", help="do not record a light window before the full one")
    add(
        "--with",
        metavar="FILE",
        type=Path,
        dest="settings",
        help="apply the changes that stepscope try wrote",
    )
    add("--listen", action="store_true", help="also allow `stepscope capture` to record from the job")
    return _with_common(parser)


def capture_parser() -> argparse.ArgumentParser:
    """The options of `stepscope capture`."""
    parser = argparse.ArgumentParser(
        "stepscope capture",
        description="Record from running jobs that listen; without a target, list them.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "targets",
        nargs="*",
        metavar="PID|ADDRESS",
        help="listening processes, or profiler servers as host:port",
    )
    add("--steps", metavar="N", type=_whole(1), default=CAPTURED_STEPS, help="number of steps to record")
    add("--seconds", metavar="S", type=_least(0.001), default=DEFAULT_SECONDS, help="of profiler servers")
    add(
        "-o",
        "--output",
        metavar="DIR",
        type=Path,
        default=Path(DEFAULT_FOLDER),
        help="folder for the profile",
    )
    add("--remote", metavar="DIR", help="let profiler servers write to this folder on their own machine")
    add("--timeout", metavar="S", type=_least(0.1), default=DEFAULT_TIMEOUT, help="maximum seconds to wait")
    add("--no-stacks", action="store_true", help="do not record Python functions")
    add("--stacks", action="store_true", help="show where all threads are now; `all` for every process")
    return _with_common(parser)


def _with_common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("-q", "--quiet", action="store_true", help="hide notes")
    # So that the same command line works with both; there are no colours here.
    colors = ("auto", "always", "never")
    parser.add_argument("--color", choices=colors, default="auto", help=argparse.SUPPRESS)
    return parser


def _whole(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return int(text)

    return number


def _least(least: float) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        if not float(text) >= least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return float(text)

    return seconds


def _run(arguments: Sequence[str]) -> int:
    parser = run_parser()
    given = parser.parse_args(arguments)
    options = {name: not getattr(given, f"no_{name}") for name in ("memory", "shapes", "stacks", "light")}
    try:
        job = Job(
            words=command_of([*(["-m"] if given.m else []), *given.command]),
            steps=steps_of(given.steps),
            folder=given.output,
            repeat=given.repeat,
            options={**options, "keep": keep_of(given.keep)},
            listen=given.listen,
            settings=given.settings,
        )
    except WrongUsage as error:
        parser.error(str(error))
    return end_like(_guarded(lambda talk: record(job, talk), given.quiet))


def _capture(arguments: Sequence[str]) -> int:
    given = capture_parser().parse_args(arguments)
    wish = Wish(
        given.steps,
        given.seconds,
        given.output,
        given.remote,
        given.timeout,
        stacks=not given.no_stacks,
        only_stacks=given.stacks,
    )
    return _guarded(lambda talk: capture_from(given.targets, wish, talk), given.quiet)


def _guarded(work: Callable[[PlainTalk], int], quiet: bool) -> int:
    """Every failure ends with one message and an exit code."""
    talk = PlainTalk(quiet)
    try:
        code = work(talk)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        talk.note("\nInterrupted.")
        return INTERRUPTED
    except StepscopeError as error:
        talk.fail(error.what, error.fix)
        return error.exit_code
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        talk.fail(f"{error.strerror or error}{where}.", "Check the disk and its permissions, then try again.")
        return StepscopeError.exit_code
