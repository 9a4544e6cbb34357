"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color

ProfilePaths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Files of one job, or a folder, quoted glob pattern or URL."),
]
RankOption = Annotated[int | None, typer.Option("--rank", metavar="N", min=0, help="Only this rank.")]


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    """The names of the runs at the paths that the command line has so far."""
    from stepscope.errors import StepscopeError
    from stepscope.profiles.find.catalog import scan

    words = context.params.get("paths") or context.args  # unparsed while an option lacks its value
    paths = [word for word in words if Path(word).exists()]
    try:
        names = [run.name for run in scan(paths).runs] if paths else []
    except (StepscopeError, OSError):
        names = []
    return [name for name in names if name.startswith(incomplete)]


RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="NAME",
        help="Run to open if the folder has several; default: the newest.",
        autocompletion=complete_run,
    ),
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Do not use or write the cache.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Hide progress and notes.")]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show more detail, and tracebacks of errors.")
]
ColorOption = Annotated[Color, typer.Option("--color", help="Use colours; auto honours NO_COLOR.")]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
]
ForceOption = Annotated[bool, typer.Option("-f", "--force", help="Overwrite existing files.")]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw", help="CSV: write names as they are, also those that a spreadsheet would run as formulas."
    ),
]
StepOption = Annotated[
    str | None,
    typer.Option(
        "--step", metavar="A:B", help="Only steps A to B, inclusive; a single number selects one step."
    ),
]
StepNameOption = Annotated[
    str | None,
    typer.Option(
        "--step-name", metavar="REGEX", help="The annotation that marks the steps: its name, or a pattern."
    ),
]
WholeOption = Annotated[
    bool, typer.Option("--whole", help="Take the whole recording as one window, whatever marks steps in it.")
]
RowsOption = Annotated[
    int | None,
    typer.Option("-n", "--limit", metavar="N", min=0, help="Maximum rows per table, 0 for all."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Read the ranks on the workers of a Dask scheduler: tcp://host:8786, or its scheduler file.",
    ),
]
