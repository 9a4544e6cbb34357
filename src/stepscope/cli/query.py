"""`stepscope query`: SQL over the tables of a profile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from stepscope.assistant.handles import is_handle
from stepscope.cli.console import Color, Talk, session
from stepscope.cli.opened import opened
from stepscope.cli.options import (
    ColorOption,
    ForceOption,
    NoCacheOption,
    OutputOption,
    ProfilePaths,
    QuietOption,
    RankOption,
    RawOption,
    RunOption,
    VerboseOption,
)
from stepscope.cli.output import destination, send
from stepscope.errors import StepscopeError
from stepscope.profiles.cache.atomic_files import refuse_existing
from stepscope.profiles.sql.wire import Order

if TYPE_CHECKING:
    import polars as pl

    from stepscope.profiles.profile import Profile

ROWS_SHOWN = 100


class Format(str, Enum):
    """How to write the rows."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def query(
    paths: ProfilePaths,
    sql: Annotated[str, typer.Argument(metavar="SQL", help='One SELECT over the tables, such as "SELECT name, dur_ns FROM events LIMIT 5"; or a handle of the report, such as finding:1 or step:7, for the events behind it.')],
    output_format: Annotated[Format | None, typer.Option("--format", help="How to write the rows; by the name of FILE, else table.")] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="End the query after that time; without it there is no limit.")] = None,
    limit: Annotated[int | None, typer.Option("-n", "--limit", metavar="N", min=0, help=f"Maximum number of rows, 0 for all; a table shows {ROWS_SHOWN} by default.")] = None,
    output: OutputOption = None,
    force: ForceOption = False,
    raw: RawOption = False,
    rank: RankOption = None,
    run: RunOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Query the tables of a profile with SQL, or list the events behind a handle.

    The tables are events, links, tracks, ops, kernels, copies, memory, collectives, counters, modules, traces and
    problems; with several ranks each has a column rank. One SELECT in DuckDB's SQL, in a process that can open neither
    files nor connections.
    """
    with session(quiet, verbose, color) as talk:
        chosen = output_format or _by_name(output)
        _check_destination(chosen, output, force)
        profile = partial(opened, talk, paths, rank, run, no_cache)
        found = (
            _behind(talk, sql, profile()) if is_handle(sql) else _found(talk, Order(sql, timeout), profile)
        )
        shown = _limited(talk, found, chosen, limit)
        with destination(output, force) as stream:
            _WRITERS[chosen](shown, stream, raw)


def _found(talk: Talk, order: Order, profile: Callable[[], Profile]) -> pl.DataFrame:
    """The rows. The worker starts while we import, and looks at the query before the profile is read."""
    from stepscope.profiles.sql.client import Worker

    with Worker() as worker:
        import stepscope.profiles.load  # noqa: F401

        worker.begin(order)
        if talk.verbose:
            for protection in worker.protections:
                talk.note(f"protected by {protection}")
        loaded = profile()
        with talk.working("Running the query"):
            return worker.finish(loaded.table).frame


def _behind(talk: Talk, handle: str, profile: Profile) -> pl.DataFrame:
    """The events that the handle means, the worst first."""
    from stepscope.assistant.behind import as_frame, find_behind

    with talk.working("Looking for the events"):
        return as_frame(find_behind(profile, profile.report(), handle))


def _by_name(output: Path | None) -> Format:
    suffix = output.suffix.removeprefix(".") if output is not None else ""
    return Format(suffix) if suffix in {"csv", "json", "parquet"} else Format.table


def _check_destination(chosen: Format, output: Path | None, force: bool) -> None:
    """Before the profile is read: a refusal should not take a minute."""
    if output is not None:
        refuse_existing(output, force)
    elif chosen is Format.parquet and sys.stdout.isatty():
        raise StepscopeError(
            "Parquet is binary and would garble the terminal.",
            fix="Name a file with -o, or send it through a pipe.",
        )


def _limited(talk: Talk, found: pl.DataFrame, chosen: Format, limit: int | None) -> pl.DataFrame:
    """The first rows; says so where that is not all."""
    most = limit if limit is not None else ROWS_SHOWN if chosen is Format.table else 0
    if most == 0 or len(found) <= most:
        return found
    talk.warn(f"Showing {most:,} of {len(found):,} rows. All of them: --limit 0")
    return found.head(most)


def _write_table(found: pl.DataFrame, stream: IO[bytes], raw: bool) -> None:
    from stepscope.cli.table import terminal_width, text_table
    from stepscope.profiles.rows import as_texts

    width = terminal_width() if stream is sys.stdout.buffer else None
    numeric = [dtype.is_numeric() for dtype in found.schema.dtypes()]
    for line in text_table(found.columns, as_texts(found).rows(), numeric, width):
        stream.write(f"{line}\n".encode())


def _write_csv(found: pl.DataFrame, stream: IO[bytes], raw: bool) -> None:
    from stepscope.profiles.rows import csv_header, csv_rows

    send(csv_header(found, raw=raw) + csv_rows(found, raw=raw), stream)


def _write_json(found: pl.DataFrame, stream: IO[bytes], raw: bool) -> None:
    from stepscope.profiles.rows import json_lines

    for piece in json_lines(found):
        send(piece, stream)


def _write_parquet(found: pl.DataFrame, stream: IO[bytes], raw: bool) -> None:
    found.write_parquet(stream)


_WRITERS = {
    Format.table: _write_table,
    Format.csv: _write_csv,
    Format.json: _write_json,
    Format.parquet: _write_parquet,
}
