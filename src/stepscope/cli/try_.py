"""`stepscope try`: measure what a change brings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import INTERRUPTED, Color, Talk, session
from stepscope.cli.options import ColorOption, QuietOption
from stepscope.cli.output import send
from stepscope.errors import StepscopeError


class Format(str, Enum):
    """How to write it."""

    text = "text"
    json = "json"


SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def try_(
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND …", help="python train.py …, or -m module …", show_default=False)] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="A change, such as workers, bf16, compile, or the code of a finding; may be repeated.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every change that fits the frameworks of the job, also those that no finding asks for.")] = False,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", min=2, max=20, help="How often each change is run, between unchanged runs.")] = 3,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=2, help="Steps that are timed in a run.")] = 20,
    warmup: Annotated[int, typer.Option("--warmup", metavar="N", min=1, help="Steps before them.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.0, help="Time at least this long.")] = 2.0,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", min=1.0, help="End a run that takes longer.")] = 300.0,
    apply: Annotated[Path | None, typer.Option("--apply", metavar="FILE", help="Write the changes that won; stepscope run --with FILE uses them.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help="Append promised and measured speed-ups to FILE.")] = None,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask before the first run.")] = False,
    output_format: Annotated[Format, typer.Option("--format", help="Output format: text, or JSON for programs.")] = Format.text,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Run a job with and without each change, in turns, and print the promised and the measured speed-up.

    Begins with the findings of a short recording. Each run is a process of its own that ends after some steps; experiment trackers are off, and
    checkpoints go to a scratch folder where the framework allows it. Runs in the current folder.
    """
    with session(quiet, False, color) as talk:
        from stepscope.capture.command.run import WrongUsage, command_of
        from stepscope.capture.trial.settings import write_settings
        from stepscope.trial.conduct import choose_changes, conduct, make_runner
        from stepscope.trial.profile import Recorded, record_findings
        from stepscope.trial.recorded import record as keep
        from stepscope.trial.text import outcome_json, outcome_lines, plan_words

        try:
            job = command_of(command or [])
        except WrongUsage as error:
            raise typer.BadParameter(str(error)) from None
        folder = Path.cwd()
        _ask(job, folder, yes)
        talk.note("Recording a few steps")
        try:
            seen = record_findings(job, folder, timeout)
        except StepscopeError as error:
            if not only:
                raise
            talk.warn(f"{error.what} What --only names is tried without a promise.")
            seen = Recorded()
        wanted = choose_changes(seen.findings, seen.frameworks, only or (), every)
        talk.note(plan_words(seen.findings, wanted))
        if not wanted:
            raise typer.Exit(0)
        run = make_runner(
            job, folder, timeout, warmup=warmup, steps=steps, least_s=seconds, most_s=max(seconds, 20.0)
        )
        outcome = conduct(wanted, run, rounds, _speak(talk, len(wanted), rounds), folder)
        is_json = output_format is Format.json
        words = outcome_json(outcome) if is_json else "".join(f"{line}\n" for line in outcome_lines(outcome))
        send(words, sys.stdout.buffer)
        if record is not None:
            added = keep(record, outcome, shlex.join(job), seen.device)
            talk.note(f"Kept {added} {'trial' if added == 1 else 'trials'} in {record}")
        if apply is not None:
            write_settings(apply, outcome.winners)
            talk.note(f"Wrote {apply}: {', '.join(outcome.winners) or 'no change won'}")
        if outcome.is_interrupted:
            raise typer.Exit(INTERRUPTED)


def _ask(words: list[str], folder: Path, yes: bool) -> None:
    if yes:
        return
    question = f"Run {shlex.join(words)} several times in {folder}?"
    if not sys.stdin.isatty():
        raise typer.BadParameter("stdin is not a terminal: use --yes to run without asking")
    if not typer.confirm(question):
        raise typer.Exit(1)


def _speak(talk: Talk, changes: int, rounds: int) -> Callable[[str], None]:
    """Says which run begins, of how many."""
    total = rounds * (changes + 1) + 1
    begun = [0]

    def say(name: str) -> None:
        begun[0] += 1
        talk.note(f"Run {begun[0]} of {total}: {name}")

    return say
