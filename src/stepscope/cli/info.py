"""`stepscope info`: what is in a profile."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.opened import opened
from stepscope.cli.options import (
    ColorOption,
    NoCacheOption,
    ProfilePaths,
    QuietOption,
    RankOption,
    RunOption,
    VerboseOption,
)
from stepscope.cli.output import send


class Format(str, Enum):
    """Output format."""

    text = "text"
    json = "json"


def info(
    paths: ProfilePaths,
    output_format: Annotated[Format, typer.Option("--format", help="Output format: text, or JSON for programs.")] = Format.text,
    rank: RankOption = None,
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Show what is in a profile: framework, devices, ranks, steps, events, capture options, problems."""
    with session(quiet, verbose, color) as talk:
        profile = opened(talk, paths, rank, run, no_cache)
        from stepscope.profiles.overview import overview

        with talk.working("Counting"):
            found = overview(profile, is_cached=not no_cache)
        if found.interpreted:
            talk.warn(_slow_path(found.interpreted))
        if output_format is Format.json:
            import msgspec

            send(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n", sys.stdout.buffer)
            return
        from stepscope.cli.info_text import lines
        from stepscope.cli.table import terminal_width

        for line in lines(found, verbose=verbose, width=terminal_width()):
            talk.out.print(line)


def _slow_path(modules: list[str]) -> str:
    """One short line: which they are is said by `stepscope doctor`."""
    return f"slow path: {len(modules)} hot loops run interpreted, many times slower; install a wheel, or a C compiler and stepscope again."
