"""`stepscope report`: where the time and the bytes of a step went, and what to change."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.console import Color, Talk, session
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
from stepscope.cli.output import destination, send
from stepscope.errors import StepscopeError
from stepscope.profile.whole_files import ready_folder, refuse_existing, whole_file

if TYPE_CHECKING:
    from stepscope.report.model import Report


SECTIONS = "problems, findings, breakdown, steps, input, ops, kernels, precision, device, memory, collectives, coverage"


class By(str, Enum):
    """What tells ops apart, beside their names."""

    scope = "scope"
    shapes = "shapes"
    placement = "placement"


class Format(str, Enum):
    """How to write it."""

    text = "text"
    json = "json"
    csv = "csv"
    md = "md"
    html = "html"


# Rows of a table, where the user says nothing: as many as suit the form.
_ROWS = {Format.text: 10, Format.md: 20, Format.html: 200, Format.json: 100, Format.csv: 0}


def _print_schema(wanted: bool) -> None:
    if wanted:
        from stepscope.report.json_text import schema_text

        typer.echo(schema_text(), nl=False)
        raise typer.Exit


def report(
    path: ProfilePath,
    output_format: Annotated[Format | None, typer.Option("--format", help="How to write it; by the name of FILE, else text.")] = None,
    section: Annotated[list[str] | None, typer.Option("--section", metavar="NAME", help=f"Only this section; may be given several times: {SECTIONS}.")] = None,
    step: Annotated[str | None, typer.Option("--step", metavar="A:B", help="Only the steps A to B, both included; one number for one step.")] = None,
    step_name: Annotated[str | None, typer.Option("--step-name", metavar="NAME", help="The annotation that marks the steps.")] = None,
    by: Annotated[list[By] | None, typer.Option("--by", help="Split ops further; may be given several times.")] = None,
    limit: Annotated[int | None, typer.Option("-n", "--limit", metavar="N", min=0, help="At most so many rows of a table, 0 for all.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there instead of to stdout; a folder for all tables as CSV.")] = None,
    force: ForceOption = False,
    rank: RankOption = None,
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
    schema: Annotated[bool, typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON schema of a report.")] = False,
) -> None:  # fmt: skip
    """Explain a profile: where the time and the bytes of a step go, by cause and by name, and what to change.

    Problems of the capture come first, then what to change, then the account and the tables. JSON, CSV, Markdown and a
    self-contained web page say the same.
    """
    with session(quiet, verbose, color) as talk:
        chosen = output_format or _by_name(output)
        _check_target(chosen, output, force, section)
        rows = _ROWS[chosen] if limit is None else limit
        from stepscope.report.build import chosen_sections
        from stepscope.report.build import report as build

        chosen_sections(section)
        profile = opened(talk, path, rank, run, no_cache)
        ops_by = [each.value for each in by or ()]
        found = build(profile, step=step, step_name=step_name, sections=section, limit=rows, ops_by=ops_by)
        if chosen is Format.text and output is None:
            _print(talk, found, section, rows)
        elif chosen is Format.csv and output is not None and not section:
            _write_folder(found, output, force)
        else:
            with destination(output, force) as stream:
                send(_text(chosen, found, section, rows), stream)
        if output is not None:
            talk.note(f"Wrote {output}")


def _by_name(output: Path | None) -> Format:
    suffix = output.suffix.removeprefix(".").lower() if output is not None else ""
    names = {"json": Format.json, "csv": Format.csv, "md": Format.md, "html": Format.html, "htm": Format.html}
    return names.get(suffix, Format.text)


def _check_target(chosen: Format, output: Path | None, force: bool, sections: list[str] | None) -> None:
    """Before the profile is read: a refusal should not take a minute."""
    if chosen is Format.csv and not sections:
        if output is None:
            raise StepscopeError(
                "A report has several tables, and CSV holds one.",
                fix="Choose one with --section, or name a folder with -o.",
            )
        ready_folder(output, force)
    elif output is not None:
        refuse_existing(output, force)
    elif chosen is Format.html and sys.stdout.isatty():
        raise StepscopeError("A web page is of no use in a terminal.", fix="Name a file with -o.")


def _print(talk: Talk, found: Report, sections: list[str] | None, limit: int) -> None:
    from stepscope.cli.table import terminal_width
    from stepscope.report.terminal import WIDTH, report_lines

    width = terminal_width() or WIDTH
    for line in report_lines(found, width, sections=sections, limit=limit):
        talk.out.print(line)


def _text(chosen: Format, found: Report, sections: list[str] | None, limit: int) -> str:
    if chosen is Format.json:
        from stepscope.report.json_text import as_json

        return as_json(found, sections=sections)
    if chosen is Format.csv:
        from stepscope.report.csv_text import csv_tables

        return "\n".join(text for _, text in csv_tables(found, sections))
    if chosen is Format.md:
        from stepscope.report.markdown import as_markdown

        return as_markdown(found, sections=sections, limit=limit)
    if chosen is Format.html:
        from stepscope.report.html import as_html

        return as_html(found, sections=sections, limit=limit)
    from stepscope.report.terminal import as_text

    return as_text(found, sections=sections, limit=limit)


def _write_folder(found: Report, folder: Path, force: bool) -> None:
    from stepscope.report.csv_text import csv_tables

    for name, text in csv_tables(found):
        with whole_file(folder / f"{name}.csv", force) as file:
            file.write(text.encode())
