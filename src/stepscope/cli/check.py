"""`stepscope check`: compare a profile with its budget."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.console import Color, Talk, session
from stepscope.cli.opened import opened
from stepscope.cli.options import (
    ColorOption,
    ForceOption,
    NoCacheOption,
    OutputOption,
    ProfilePaths,
    QuietOption,
    RankOption,
    RunOption,
    StepNameOption,
    StepOption,
    VerboseOption,
    WholeOption,
)
from stepscope.cli.output import destination, send
from stepscope.profiles.cache.atomic_files import refuse_existing

if TYPE_CHECKING:
    from stepscope.gate.check import Gate

OVER_BUDGET = 3
WIDTH = 200  # of logs: a message is better long than cut


class Format(str, Enum):
    """How to write it."""

    text = "text"
    json = "json"
    md = "md"


def check(
    paths: ProfilePaths,
    budget: Annotated[Path, typer.Option("--budget", metavar="FILE", help="Limits, as a TOML file.")] = Path("budgets.toml"),
    baseline: Annotated[list[str] | None, typer.Option("--baseline", metavar="PATH", help="Profile to compare with, instead of the file's. Repeat for several recordings of the same job: they measure the noise.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also fail on inconclusive results (within noise).")] = False,
    output_format: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.text,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write the limits as JUnit XML, one test case each.")] = None,
    step: StepOption = None,
    step_name: StepNameOption = None,
    whole: WholeOption = False,
    output: OutputOption = None,
    force: ForceOption = False,
    rank: RankOption = None,
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Compare a profile with its budget: step time, parts, peak memory, findings, and growth against a baseline.

    The exit code is 3 if a limit is exceeded by more than noise, or if the profile lacks the figure.
    """
    with session(quiet, verbose, color) as talk:
        from stepscope.analysis.options import Options, parse_steps
        from stepscope.gate.budget import read_budget, with_baseline
        from stepscope.gate.check import check as judge

        for target in filter(None, (output, junit)):
            refuse_existing(target, force)
        limits = read_budget(budget)
        if baseline:
            limits = with_baseline(limits, baseline)
        profile = opened(talk, paths, rank, run, no_cache)
        options = Options(step_name, parse_steps(step) if step is not None else None, 0, whole=whole)
        with talk.working("Comparing with the budget"):
            found = judge(profile, limits, options=options, strict=strict)
        _write_junit(found, junit, force)
        tell(talk, found, output_format.value, output, force)


def _write_junit(found: Gate, path: Path | None, force: bool) -> None:
    from stepscope.gate.junit import as_junit

    if path is not None:
        with destination(path, force) as stream:
            send(as_junit(found), stream)


def tell(talk: Talk, found: Gate, form: str, output: Path | None, force: bool) -> None:
    """Write the verdict, and end with its exit code."""
    from stepscope.cli.table import terminal_width
    from stepscope.gate.text import as_json, as_markdown, as_text, gate_lines

    if form == "text" and output is None:
        for line in gate_lines(found, terminal_width() or WIDTH):
            talk.out.print(line)
    else:
        words = {"json": as_json, "md": as_markdown, "text": as_text}[form](found)
        with destination(output, force) as stream:
            send(words, stream)
        talk.note(found.summary)
    sys.stdout.flush()
    if not found.passed:
        raise typer.Exit(OVER_BUDGET)
