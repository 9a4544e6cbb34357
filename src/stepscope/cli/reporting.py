"""The report as a command shows it: kept or made, and in the form that was asked for.

Nothing here needs the library that reads command lines: the shortest ones are read without it (`cli.start.short`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from stepscope.cli.console import Color, Talk, session
from stepscope.cli.opened import opened
from stepscope.cli.output import destination, send
from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.lazy import dataclass
from stepscope.profiles.cache.atomic_files import ready_folder, refuse_existing, whole_file

if TYPE_CHECKING:
    from stepscope.reports.kept import Asked
    from stepscope.reports.report import Report


@dataclass(frozen=True, kw_only=True)
class ReportWish:
    """What a command line asks for; see the options of `stepscope report`."""

    paths: list[str]
    output_format: str | None = None
    sections: list[str] | None = None
    full: bool = False
    budget: int | None = None
    about: str | None = None
    step: str | None = None
    step_name: str | None = None
    whole: bool = False
    ops_by: tuple[str, ...] = ()
    limit: int | None = None
    output: Path | None = None
    force: bool = False
    raw: bool = False
    rank: int | None = None
    run: str | None = None
    cluster: str | None = None
    workers: int | None = None
    no_cache: bool = False
    quiet: bool = False
    verbose: bool = False
    color: Color = Color.auto

    @property
    def is_question(self) -> bool:
        """Whether an assistant asks."""
        return self.budget is not None or self.about is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it says which processes read the ranks."""
        return self.cluster is not None or self.workers is not None

    def is_brief(self, form: str) -> bool:
        """Whether one screen is wanted."""
        more = self.full or self.sections or self.verbose or self.ops_by or self.limit is not None
        return form == "text" and not (more or self.is_question)


def run_report(wish: ReportWish) -> None:
    """Find or make the report, and show it."""
    with session(wish.quiet, wish.verbose, wish.color) as talk:
        from stepscope.reports.render.write import find_renderers, form_of

        form = wish.output_format or form_of(wish.output)
        rows = find_renderers()[form].rows if wish.limit is None else wish.limit
        _show(talk, wish, _found(talk, wish, form, rows), form, rows)


def _found(talk: Talk, wish: ReportWish, form: str, rows: int) -> Report:
    """The report that was kept, or a new one."""
    from stepscope.reports.kept import find_kept

    is_brief = wish.is_brief(form)
    asked = _asked(wish, rows)
    kept = None if wish.no_cache or wish.is_elsewhere else find_kept(wish.paths, wish.run)
    known = None if kept is None else kept.get_brief(asked) if is_brief else kept.get(asked)
    if known is None:
        _check_sections(wish.sections)
    _check_target(form, wish.output, wish.force, wish.sections)
    if known is not None:
        return known
    found = _made(talk, wish, is_brief, rows)
    if kept is None:
        return found
    from msgspec.structs import replace

    return kept.keep(replace(asked, brief=is_brief), found)


def _asked(wish: ReportWish, rows: int) -> Asked:
    from stepscope.reports.kept import Asked

    return Asked(
        step=wish.step, step_name=wish.step_name, whole=wish.whole, loaded_rank=wish.rank, limit=rows,
        ops_by=wish.ops_by, sections=None if wish.sections is None else tuple(wish.sections),
    )  # fmt: skip


def _show(talk: Talk, wish: ReportWish, found: Report, form: str, rows: int) -> None:
    """In the terminal, or as a file."""
    output, force = wish.output, wish.force
    if wish.is_question:
        _answer(found, wish.budget, wish.about, output, force)
        return
    if wish.is_brief(form):
        print_brief(talk, found, wish.paths, output, force)
    elif form == "text" and output is None:
        _print(talk, found, wish.sections, rows, wish.verbose)
    elif form == "csv":
        _write_csv(found, output, force, wish.sections, wish.raw)
    else:
        _write(talk, found, form, rows, wish)
    if output is not None:
        talk.note(f"Wrote {output}")


def _write(talk: Talk, found: Report, form: str, rows: int, wish: ReportWish) -> None:
    from stepscope.reports.render.write import written

    with talk.working("Writing"):
        text = written(found, form, sections=wish.sections, limit=rows)
    with destination(wish.output, wish.force) as stream:
        send(text, stream)


def _answer(found: Report, budget: int | None, about: str | None, output: Path | None, force: bool) -> None:
    """For an assistant: about a handle, or all that matters most."""
    from stepscope.assistant.about import as_about
    from stepscope.assistant.summary import as_summary
    from stepscope.registers.policy.assistant import ANSWER_TOKENS, REPORT_TOKENS

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


def _made(talk: Talk, wish: ReportWish, is_brief: bool, rows: int) -> Report:
    """A new report, by several processes where that is faster."""
    from stepscope.profiles.cache.background import postponed

    wanted: dict[str, Any] = {
        "step": wish.step, "step_name": wish.step_name, "whole": wish.whole, "sections": wish.sections,
        "limit": rows, "ops_by": list(wish.ops_by),
    }  # fmt: skip
    of_run = {"run": wish.run, "cache": not wish.no_cache}
    if wish.is_elsewhere:
        where = wish.workers if wish.cluster is None else wish.cluster
        return _elsewhere(talk, wish.paths, where, rank=wish.rank, **of_run, **wanted)
    many = _by_processes(talk, wish.paths, **of_run, **wanted) if wish.rank is None else None
    if many is not None:
        return many
    with postponed():  # the tables are stored when the report is there
        Thread(target=_import_analysis, daemon=True).start()
        profile = opened(talk, wish.paths, wish.rank, wish.run, wish.no_cache)
        with talk.working("Analysing"):
            from stepscope.reports.build import report as build

            return build(profile, brief=is_brief, **wanted)


def _import_analysis() -> None:
    """While the profile is read: the readers leave the interpreter to others for most of their time."""
    import stepscope.reports.build
    import stepscope.reports.render.brief  # noqa: F401
    from stepscope.analysis.findings.registry import built_in_rules

    built_in_rules()
    import rich.console  # noqa: F401
    from msgspec.json import Decoder

    from stepscope.reports.report import Report

    Decoder(Report)  # its types are looked up once, and kept with them


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
