"""`stepscope diff`: what changed between two profiles."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.check import OVER_BUDGET, WIDTH
from stepscope.cli.console import Color, Talk, session
from stepscope.cli.opened import opened
from stepscope.cli.options import (
    ClusterOption,
    ColorOption,
    ForceOption,
    NoCacheOption,
    OutputOption,
    QuietOption,
    RankOption,
    RowsOption,
    StepNameOption,
    StepOption,
    VerboseOption,
    WholeOption,
)
from stepscope.cli.output import destination, send
from stepscope.errors import StepscopeError
from stepscope.profiles.cache.atomic_files import refuse_existing

if TYPE_CHECKING:
    from stepscope.diffs.build import Diff
    from stepscope.gate.check import Gate


class Format(str, Enum):
    """How to write it."""

    text = "text"
    json = "json"
    md = "md"
    html = "html"
    folded = "folded"


def complete_limit(incomplete: str) -> list[str]:
    """What --fail-on can limit, for the shell; the amount follows."""
    from stepscope.analysis.parts import PARTS

    return [f"{name}=" for name in ("step_time", "peak_memory", *PARTS) if name.startswith(incomplete)]


def _print_schema(wanted: bool) -> None:
    if wanted:
        from stepscope.diffs.render.write import schema_text

        typer.echo(schema_text(), nl=False)
        raise typer.Exit


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="Profile to compare with: file, folder, quoted glob pattern or URL.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Profile that may be faster or slower.")],
    also_a: Annotated[list[str] | None, typer.Option("--also-a", metavar="PATH", help="Another recording of A; may be repeated. Several recordings of one job measure the noise.")] = None,
    also_b: Annotated[list[str] | None, typer.Option("--also-b", metavar="PATH", help="Another recording of B; may be repeated.")] = None,
    output_format: Annotated[Format | None, typer.Option("--format", help="Output format; default: by the extension of FILE, else text.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Text: all tables instead of one screen; -v and --limit imply it.")] = False,
    step: StepOption = None,
    step_name: StepNameOption = None,
    whole: WholeOption = False,
    fail_on: Annotated[list[str] | None, typer.Option("--fail-on", metavar="5%", autocompletion=complete_limit, help="Exit with code 3 if the step of B is longer by more than this and by more than noise; also peak_memory=3%, or a part such as compute=10%. May be repeated.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --fail-on, also fail on inconclusive results (within noise).")] = False,
    limit: RowsOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    rank: RankOption = None,
    cluster: ClusterOption = None,
    workers: Annotated[int | None, typer.Option("--workers", metavar="N", min=0, help="Number of local processes that read the ranks.")] = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
    schema: Annotated[bool, typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON schema of a diff.")] = False,
) -> None:  # fmt: skip
    """Compare two profiles per step: parts, ops, kernels, memory, collectives and findings, each with its noise.

    One screen has the verdict, what explains it and the parts of a step; --full all tables. A difference is significant if it exceeds the noise between steps and between runs.
    """
    with session(quiet, verbose, color) as talk:
        from stepscope.diffs.build import diff as compare
        from stepscope.diffs.render.brief import as_brief
        from stepscope.diffs.render.write import ROWS, form_of, written
        from stepscope.gate.budget import growth
        from stepscope.gate.check import check_diff

        limits = growth(fail_on) if fail_on else None
        form = output_format.value if output_format else form_of(output)
        _check_target(form, output, force)
        rows = ROWS[form] if limit is None else limit
        runs = [[first, *(more or ())] for first, more in ((a, also_a), (b, also_b))]
        wanted: dict[str, Any] = {"step": step, "step_name": step_name, "whole": whole, "limit": rows}
        if cluster is not None or workers is not None:
            where = workers if cluster is None else cluster
            found = _elsewhere(talk, runs, where, rank=rank, cache=not no_cache, **wanted)
        else:
            profiles = [[opened(talk, path, rank, None, no_cache) for path in run] for run in runs]
            with talk.working("Comparing"):
                found = compare(profiles[0], profiles[1], **wanted)
        is_brief = form == "text" and not (full or verbose or limit is not None)
        if form == "text" and output is None:
            _print(talk, found, rows, is_brief)
        else:
            with talk.working("Writing"):
                text = as_brief(found) if is_brief else written(found, form, limit=rows)
            with destination(output, force) as stream:
                send(text, stream)
        if output is not None:
            talk.note(f"Wrote {output}")
        if limits is not None:
            _fail(talk, check_diff(found, limits, strict=strict))


def _elsewhere(talk: Talk, runs: list[list[str]], where: str | int | None, **wanted: Any) -> Diff:
    """The diff by ranks that are read by other processes, here or on other machines."""
    from stepscope.cluster.sides import diff as compare

    with talk.progress("Reading") as progress:
        return compare(runs[0], runs[1], where=where, progress=progress, **wanted)


def _check_target(form: str, output: Path | None, force: bool) -> None:
    """Before the profiles are read."""
    if output is not None:
        refuse_existing(output, force)
    elif form == "html" and sys.stdout.isatty():
        raise StepscopeError("HTML output needs a file.", fix="Use -o FILE.")


def _fail(talk: Talk, found: Gate) -> None:
    """Print the verdict of --fail-on to stderr, and exit with 3 if a limit is exceeded."""
    from stepscope.cli.table import terminal_width
    from stepscope.gate.text import gate_lines

    sys.stdout.flush()
    for line in gate_lines(found, terminal_width() or WIDTH):
        talk.err.print(line)
    if not found.passed:
        raise typer.Exit(OVER_BUDGET)


def _print(talk: Talk, found: Diff, limit: int, is_brief: bool) -> None:
    from stepscope.cli.table import terminal_width
    from stepscope.diffs.render.brief import brief_diff_lines
    from stepscope.diffs.render.text import diff_lines
    from stepscope.registers.policy.diffs import DIFF_TEXT_WIDTH
    from stepscope.registers.policy.tables import REPORT_WIDTH

    width = terminal_width()
    if is_brief:
        lines = iter(brief_diff_lines(found, min(width or REPORT_WIDTH, REPORT_WIDTH)))
    else:
        lines = diff_lines(found, width or DIFF_TEXT_WIDTH, limit=limit)
    for line in lines:
        talk.out.print(line)
