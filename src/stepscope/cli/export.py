"""`stepscope export`: a profile for other tools."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import (
    ColorOption,
    ForceOption,
    NoCacheOption,
    ProfilePath,
    QuietOption,
    RankOption,
    RunOption,
    VerboseOption,
    opened,
)
from stepscope.errors import StepscopeError


class Target(str, Enum):
    """What to write."""

    chrome = "chrome"
    parquet = "parquet"


def export(
    path: ProfilePath,
    to: Annotated[Target, typer.Option("--to", help="chrome: JSON for Perfetto. parquet: a folder with a file per table.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="OUT", help="Where to; named after PATH by default, in the current folder. - is stdout. A name that ends in .gz is packed.")] = None,
    force: ForceOption = False,
    rank: RankOption = None,
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Write a profile for other tools.

    Chrome trace JSON opens in Perfetto, and in stepscope again with nothing lost. With several ranks it is a folder with
    a file per rank. Parquet is a folder with a file per table.
    """
    with session(quiet, verbose, color) as talk:
        from stepscope.profile import export as writer

        if output == Path("-"):
            _refuse_stdout(to)
            profile = opened(talk, path, rank, run, no_cache)
            writer.chrome_to(profile, sys.stdout.buffer)
            return
        if output is not None:
            writer.check_target(output, to.value, force)
        profile = opened(talk, path, rank, run, no_cache)
        target = output or writer.default_name(profile, to.value)
        written = writer.WRITERS[to.value](profile, target, force)
        talk.note(f"Wrote {written}")
        if to is Target.chrome:
            talk.note("Open it at ui.perfetto.dev, or again with stepscope.")


def _refuse_stdout(to: Target) -> None:
    if to is Target.parquet:
        raise StepscopeError(
            "Parquet is a folder of files and cannot go to stdout.", fix="Name a folder with -o."
        )
    if sys.stdout.isatty():
        raise StepscopeError(
            "This would flood the terminal.", fix="Name a file with -o, or send it through a pipe."
        )
