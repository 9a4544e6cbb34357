"""`stepscope report`: where the time and the bytes of a step went, and what to change."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from stepscope.cli.console import Color, Talk, session
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
    opened,
)
from stepscope.cli.output import destination, send
from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.profiles.cache.atomic_files import ready_folder, refuse_existing, whole_file
from stepscope.registers.policy.assistant import ANSWER_TOKENS, LEAST_TOKENS, REPORT_TOKENS

if TYPE_CHECKING:
    from stepscope.reports.report import Report


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
    with session(quiet, verbose, color) as talk:
        from msgspec.structs import replace

        from stepscope.reports.kept import Asked, find_kept
        from stepscope.reports.render.write import find_renderers, form_of, written

        form = output_format or form_of(output)
        rows = find_renderers()[form].rows if limit is None else limit
        ops_by = [each.value for each in by or ()]
        is_asked = budget is not None or about is not None
        is_brief = form == "text" and not (full or section or verbose or by or limit is not None or is_asked)
        asked = Asked(
            step=step, step_name=step_name, whole=whole, loaded_rank=rank, limit=rows, ops_by=tuple(ops_by),
            sections=None if section is None else tuple(section),
        )  # fmt: skip
        elsewhere = cluster is not None or workers is not None
        kept = None if no_cache or elsewhere else find_kept(paths, run)
        known = None if kept is None else kept.get_brief(asked) if is_brief else kept.get(asked)
        if known is None:
            _check_sections(section)
        _check_target(form, output, force, section)
        wanted: dict[str, Any] = {
            "step": step, "step_name": step_name, "whole": whole, "sections": section, "limit": rows, "ops_by": ops_by
        }  # fmt: skip
        if elsewhere:
            where = workers if cluster is None else cluster
            found: Report = _elsewhere(talk, paths, where, rank=rank, run=run, cache=not no_cache, **wanted)
        elif known is not None:
            found = known
        else:
            found = _made(talk, paths, rank, run, no_cache, is_brief, **wanted)
            if kept is not None:
                found = kept.keep(replace(asked, brief=is_brief), found)
        if is_asked:
            _answer(found, budget, about, output, force)
            return
        if is_brief:
            print_brief(talk, found, paths, output, force)
        elif form == "text" and output is None:
            _print(talk, found, section, rows, verbose)
        elif form == "csv":
            _write_csv(found, output, force, section, raw)
        else:
            with talk.working("Writing"):
                text = written(found, form, sections=section, limit=rows)
            with destination(output, force) as stream:
                send(text, stream)
        if output is not None:
            talk.note(f"Wrote {output}")


def _answer(found: Report, budget: int | None, about: str | None, output: Path | None, force: bool) -> None:
    """For an assistant: about a handle, or all that matters most."""
    from stepscope.assistant.about import as_about
    from stepscope.assistant.summary import as_summary

    with destination(output, force) as stream:
        if about is not None:
            send(as_about(found, about, budget or ANSWER_TOKENS), stream)
        else:
            send(as_summary(found, budget or REPORT_TOKENS), stream)


def _check_sections(names: list[str] | None) -> None:
    """Before the profile is read: a report that was kept has sections that exist."""
    if not names:
        return
    from stepscope.reports.build import chosen_sections

    chosen_sections(names)


def _made(
    talk: Talk,
    paths: list[str],
    rank: int | None,
    run: str | None,
    no_cache: bool,
    is_brief: bool,
    **wanted: Any,
) -> Report:
    """The report, by several processes where that is faster."""
    from stepscope.profiles.cache.background import postponed

    many = _by_processes(talk, paths, run=run, cache=not no_cache, **wanted) if rank is None else None
    if many is not None:
        return many
    with postponed():  # the tables are stored when the report is there
        Thread(target=_import_analysis, daemon=True).start()
        profile = opened(talk, paths, rank, run, no_cache)
        with talk.working("Analysing"):
            from stepscope.reports.build import report as build

            return build(profile, brief=is_brief, **wanted)


def _import_analysis() -> None:
    """While the profile is read: the readers leave the interpreter to others for most of their time."""
    import stepscope.reports.build
    import stepscope.reports.render.brief  # noqa: F401
    from stepscope.analysis.findings.registry import built_in_rules

    built_in_rules()


def _by_processes(talk: Talk, path: list[str], **wanted: Any) -> Report | None:
    """The report by a process for each core, where that is faster; None also where nothing of the newest run can be read."""
    from stepscope.cluster.worth import worth_processes

    if not worth_processes(path, wanted["run"]):
        return None
    try:
        return _elsewhere(talk, path, None, **wanted)
    except (UnreadableFile, OSError, NotImplementedError):  # the last: Python without semaphores has no pools
        return None


def _elsewhere(talk: Talk, path: list[str], where: str | int | None, **wanted: Any) -> Report:
    """The report of ranks that are read by other processes, here or on other machines."""
    from stepscope.cluster.report import report as build

    with talk.progress("Reading") as progress:
        return build(path, where=where, progress=progress, **wanted)


def _check_target(form: str, output: Path | None, force: bool, sections: list[str] | None) -> None:
    """Before the profile is read: a refusal should not take a minute."""
    if form == "csv" and not sections:
        if output is None:
            raise StepscopeError(
                "A report has several tables, but a CSV file holds only one.",
                fix="Choose one with --section, or write all to a folder with -o DIR.",
            )
        ready_folder(output, force)
    elif output is not None:
        refuse_existing(output, force)
    elif form == "html" and sys.stdout.isatty():
        raise StepscopeError("HTML output needs a file.", fix="Use -o FILE.")


def print_brief(talk: Talk, found: Report, paths: list[str], output: Path | None, force: bool) -> None:
    """One screen, in the terminal or as a file."""
    from stepscope.cli.table import terminal_width
    from stepscope.registers.policy.tables import REPORT_WIDTH
    from stepscope.reports.render.brief import brief_lines

    seen = terminal_width() if output is None else None
    width = min(seen or REPORT_WIDTH, REPORT_WIDTH)  # longer lines of text are hard to read
    lines = brief_lines(found, width, path=paths[0] if len(paths) == 1 else None)
    if output is None:
        for line in lines:
            talk.out.print(line)
        return
    with destination(output, force) as stream:
        send("".join(f"{line.plain.rstrip()}\n" for line in lines), stream)


def _print(talk: Talk, found: Report, sections: list[str] | None, limit: int, verbose: bool) -> None:
    from stepscope.cli.table import terminal_width
    from stepscope.reports.render.terminal import WIDTH, report_lines

    width = terminal_width() or WIDTH
    for line in report_lines(found, width, sections=sections, limit=limit, verbose=verbose):
        talk.out.print(line)


def _write_csv(
    found: Report, output: Path | None, force: bool, sections: list[str] | None, raw: bool
) -> None:
    """Some sections one after the other, or all tables as files of a folder."""
    from stepscope.reports.render.csv import csv_tables

    if sections:
        with destination(output, force) as stream:
            send("\n".join(text for _, text in csv_tables(found, sections, raw=raw)), stream)
        return
    folder = cast("Path", output)  # several tables without a folder were refused before the profile was read
    for name, text in csv_tables(found, raw=raw):
        with whole_file(folder / f"{name}.csv", force) as file:
            file.write(text.encode())
