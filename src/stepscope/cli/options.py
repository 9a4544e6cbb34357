"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.console import Color, Talk

if TYPE_CHECKING:
    from stepscope.profiles.profile import Profile

ProfilePath = Annotated[
    str, typer.Argument(metavar="PATH", help="A file, a folder, a pattern in quotes, or a URL.")
]
RankOption = Annotated[int | None, typer.Option("--rank", metavar="N", min=0, help="Only this rank.")]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="Which run of the folder; the newest by default.")
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Read the files again, and keep nothing.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no remarks.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Say more; tracebacks on errors.")]
ColorOption = Annotated[Color, typer.Option("--color", help="Colours; NO_COLOR is obeyed.")]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
]
ForceOption = Annotated[bool, typer.Option("-f", "--force", help="Overwrite what is there.")]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw", help="CSV: write names as they are, also those that a spreadsheet would run as formulas."
    ),
]
StepOption = Annotated[
    str | None,
    typer.Option(
        "--step", metavar="A:B", help="Only the steps A to B, both included; one number for one step."
    ),
]
StepNameOption = Annotated[
    str | None, typer.Option("--step-name", metavar="NAME", help="The annotation that marks the steps.")
]
RowsOption = Annotated[
    int | None,
    typer.Option("-n", "--limit", metavar="N", min=0, help="At most so many rows of a table, 0 for all."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Read the ranks on the workers of this Dask scheduler: tcp://host:8786, or its scheduler file.",
    ),
]


def opened(talk: Talk, path: str, rank: int | None, run: str | None, no_cache: bool) -> Profile:
    """The profile, with a progress bar if it takes long."""
    from stepscope.profiles.load import load

    with talk.progress("Reading") as progress:
        return load(path, cache=not no_cache, progress=progress, rank=rank, run=run)
