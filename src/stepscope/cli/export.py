"""`stepscope export`: a profile for other tools."""

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
    ProfilePaths,
    QuietOption,
    RankOption,
    RunOption,
    VerboseOption,
)
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.profiles.profile import Profile


class Target(str, Enum):
    """Output format."""

    chrome = "chrome"
    parquet = "parquet"


def export(
    paths: ProfilePaths,
    to: Annotated[Target, typer.Option("--to", help="chrome: JSON for Perfetto. parquet: a folder with one file per table.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="OUT", help="Output file or folder; default: named after the profile, in the current folder. - is stdout. A name ending in .gz is compressed.")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Chrome: write one file with all ranks, with clocks aligned by the collectives.")] = False,
    about: Annotated[str | None, typer.Option("--about", metavar="HANDLE", help="Chrome: only the step in which a handle of the report, such as finding:1 or kernel:NAME, costs most; step:7 is that step.")] = None,
    force: ForceOption = False,
    rank: RankOption = None,
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Write a profile for other tools.

    Chrome trace JSON opens in Perfetto, and again in stepscope without loss. Several ranks give a folder with one file per
    rank; with --merge, or if OUT ends in .json or .json.gz or is -, one file for Perfetto with clocks aligned by the
    collectives. Parquet is a folder with one file per table.
    """
    with session(quiet, verbose, color) as talk:
        from stepscope.profiles import export as writer

        to_stdout = output == Path("-")
        if merge and to is Target.parquet:
            raise StepscopeError(
                "--merge applies to Chrome traces only.", fix="Parquet files always contain all ranks."
            )
        if about is not None and (merge or to is Target.parquet):
            raise StepscopeError(
                "--about cuts a Chrome trace of one rank.", fix="Use --to chrome, without --merge."
            )
        if to_stdout:
            _refuse_stdout(to)
        elif output is not None:
            writer.check_target(output, to.value, force)
        profile = opened(talk, paths, rank, run, no_cache)
        if about is not None:
            _step_of(talk, profile, about, None if to_stdout else output or Path(), force)
            return
        several = to is Target.chrome and len(profile.traces) > 1
        one_file = merge or to_stdout or (output is not None and writer.is_one_file(output))
        if several and one_file:
            _merged(
                talk,
                profile,
                None if to_stdout else output or writer.default_name(profile, to.value, True),
                force,
            )
            return
        if to_stdout:
            with talk.working("Writing"):
                writer.chrome_to(profile.traces[0], sys.stdout.buffer)
            return
        target = output or writer.default_name(profile, to.value)
        with talk.working("Writing"):
            written = writer.WRITERS[to.value](profile, target, force)
        talk.note(f"Wrote {written}")
        if to is Target.chrome:
            talk.note("Open it at ui.perfetto.dev, or with stepscope.")


def _step_of(talk: Talk, profile: Profile, about: str, target: Path | None, force: bool) -> None:
    """The step in which a handle costs most; `target` is None for stdout, and no name for one after the profile."""
    from stepscope.assistant.behind import cut_step, find_behind
    from stepscope.profiles import export as writer

    with talk.working("Looking for the events"):
        behind = find_behind(profile, profile.report(), about)
        trace, step = cut_step(behind)
    place = f"rank {behind.rank}, " + ("around its worst event" if step is None else f"step {step}")
    if target is None:
        writer.chrome_to(trace, sys.stdout.buffer)
    else:
        named = writer.default_name(profile, "chrome", True)
        part = named.with_name(
            named.name.replace(".chrome.", f".{'part' if step is None else f'step{step}'}.chrome.")
        )
        written = writer.chrome_file(trace, target if target.name else part, force)
        talk.note(f"Wrote {written}: {len(trace.events):,} events of {place}")


def _merged(talk: Talk, profile: Profile, target: Path | None, force: bool) -> None:
    """All ranks in one file, or on stdout."""
    from stepscope.formats.own_export.write_merged import RankPart
    from stepscope.profiles import export as writer
    from stepscope.ranks.common_time import placed_words, rank_times, told

    with talk.working("Aligning clocks"):
        times = rank_times(profile)
    parts = [
        RankPart(rank, trace, times[rank].common)
        for rank, trace in zip(profile.ranks, profile.traces, strict=True)
    ]
    clocks = told([times[rank] for rank in profile.ranks])
    if target is None:
        with talk.working("Writing"):
            writer.merged_to(parts, clocks, sys.stdout.buffer)
    else:
        with talk.working("Writing"):
            written = writer.merged(parts, clocks, target, force)
        talk.note(f"Wrote {written}")
    talk.note(placed_words(list(times.values())))
    if target is not None:
        talk.note(
            "Open it at ui.perfetto.dev. For stepscope, export one file per rank: without --merge, to a folder."
        )


def _refuse_stdout(to: Target) -> None:
    if to is Target.parquet:
        raise StepscopeError("Parquet output is a folder and cannot go to stdout.", fix="Use -o DIR.")
    if sys.stdout.isatty():
        raise StepscopeError(
            "Refusing to write a trace to the terminal.", fix="Use -o FILE, or redirect stdout."
        )
