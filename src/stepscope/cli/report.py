"""`stepscope report`: where the time and the bytes of a step went, and what to change."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color
from stepscope.cli.options import (
    ClusterOption,
    ColorOption,
    ForceOption,
    NoCacheOption,
    ProfilePaths,
    QuietOption,
    RankOption,
    RawOption,
    RowsOption,
    RunOption,
    StepNameOption,
    StepOption,
    VerboseOption,
    WholeOption,
)
from stepscope.cli.reporting import ReportWish, run_report
from stepscope.registers.policy.assistant import ANSWER_TOKENS, LEAST_TOKENS, REPORT_TOKENS

SECTIONS = "problems, hang, findings, breakdown, regions, phases, serving, steps, critical_path, input, ops, kernels, precision, roofline, device, memory, collectives, coverage"


class By(str, Enum):
    """What distinguishes ops, in addition to their names."""

    scope = "scope"
    shapes = "shapes"
    placement = "placement"
    stack = "stack"


FORMS = "text, json, csv, md, html"


def complete_section(incomplete: str) -> list[str]:
    """For the shell."""
    return [name for name in SECTIONS.split(", ") if name.startswith(incomplete)]


def complete_form(incomplete: str) -> list[str]:
    """For the shell; those of plug-ins would take long to find."""
    return [name for name in FORMS.split(", ") if name.startswith(incomplete)]


def _known_form(name: str | None) -> str | None:
    """The format, if there is a renderer for it, here or in a plug-in."""
    if name is None:
        return None
    from stepscope.reports.render.write import find_renderers

    if name not in find_renderers():
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(find_renderers())}.")
    return name


def _print_schema(wanted: bool) -> None:
    if wanted:
        from stepscope.reports.render.json import schema_text

        typer.echo(schema_text(), nl=False)
        raise typer.Exit


def report(
    paths: ProfilePaths,
    output_format: Annotated[str | None, typer.Option("--format", metavar="NAME", callback=_known_form, autocompletion=complete_form, help=f"Output format: {FORMS}, or one of a plug-in; default: by the extension of FILE, else text.")] = None,
    section: Annotated[list[str] | None, typer.Option("--section", metavar="NAME", autocompletion=complete_section, help=f"Only this section; may be repeated: {SECTIONS}.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Text: all sections instead of one screen; -v, --limit and --by imply it.")] = False,
    budget: Annotated[int | None, typer.Option("--budget", metavar="TOKENS", min=LEAST_TOKENS, help=f"For an assistant: verdict, findings, what is not known and handles, in at most this many tokens ({REPORT_TOKENS:,} are enough; a token is 4 bytes).")] = None,
    about: Annotated[str | None, typer.Option("--about", metavar="HANDLE", help=f"What the report has about a handle, such as finding:1, part:compute, op:NAME, kernel:NAME or step:7, in at most {ANSWER_TOKENS} tokens.")] = None,
    step: StepOption = None,
    step_name: StepNameOption = None,
    whole: WholeOption = False,
    by: Annotated[list[By] | None, typer.Option("--by", help="Split ops further; may be repeated.")] = None,
    limit: RowsOption = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout; a folder for all tables as CSV.")] = None,
    force: ForceOption = False,
    raw: RawOption = False,
    rank: RankOption = None,
    run: RunOption = None,
    cluster: ClusterOption = None,
    workers: Annotated[int | None, typer.Option("--workers", metavar="N", min=0, help="Number of local processes that read the ranks, 0 for none; default: one per core if there is much to read.")] = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
    schema: Annotated[bool, typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON schema of a report.")] = False,
) -> None:  # fmt: skip
    """Explain a profile on one screen: the verdict, where the time of a step goes, and what to change.

    --full and --section print the rest: problems of the capture, all findings, the account by name, and the tables. JSON,
    CSV, Markdown and a self-contained HTML page always have all of it.
    """
    run_report(
        ReportWish(
            paths=paths, output_format=output_format, sections=section, full=full, budget=budget, about=about, step=step,
            step_name=step_name, whole=whole, ops_by=tuple(each.value for each in by or ()), limit=limit, output=output, force=force,
            raw=raw, rank=rank, run=run, cluster=cluster, workers=workers, no_cache=no_cache, quiet=quiet, verbose=verbose,
            color=color,
        )
    )  # fmt: skip
