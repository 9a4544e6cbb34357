"""One profile through all that stepscope does with it: load, report, diff, export, and every route of the server.

A fault in a section is raised, not told as a problem of the report (STEPSCOPE_RAISE), and so is one in a check of the
doctor: otherwise a section that is lost would look like one that has nothing to say.
"""

from __future__ import annotations

import io
import json
import os
import random
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

import polars as pl

from benchmarks.fuzz.asking import ask_server
from benchmarks.fuzz.cases import Case
from benchmarks.fuzz.originals import original, write
from stepscope.analysis.options import Options
from stepscope.cli import info_text
from stepscope.diffs.build import diff_sides
from stepscope.diffs.data.samples import Side
from stepscope.diffs.render import write as diff_write
from stepscope.diffs.side import read_side
from stepscope.errors import StepscopeError
from stepscope.formats.own_export.write import chrome_text
from stepscope.formats.own_export.write_merged import RankPart, merged_text
from stepscope.gate.budget import growth
from stepscope.gate.check import check_diff
from stepscope.gate.text import gate_lines
from stepscope.profiles.export import parquet
from stepscope.profiles.load import load
from stepscope.profiles.overview import overview
from stepscope.profiles.profile import Profile
from stepscope.ranks.common_time import rank_times, told
from stepscope.reports.failures import RAISE
from stepscope.reports.model.report import Report
from stepscope.reports.render.csv import csv_tables
from stepscope.reports.render.write import written
from stepscope.server.api.compare import each_step

# A section of this many rows is not lost by the loss of one or a few of them.
_ROWS = {"ops": 3, "kernels": 3}
_LOST = "analysis-failed"


class Lost(AssertionError):
    """Something is gone that the damage does not explain."""


@cache
def healthy(name: str) -> tuple[Side, int]:
    """The original, ready to be compared with, and how many events it has."""
    with tempfile.TemporaryDirectory() as folder:
        write(original(name).files, Path(folder))
        profile = load(folder, cache=False)
        return read_side(profile, Options(limit=0)), _events(profile)


def drive(case: Case, folder: Path, *, serve: bool = True) -> str:
    """`read` or `refused`; raises what is wrong. The folder stays as the profile that was driven."""
    with mock.patch.dict(os.environ, {RAISE: "1"}):
        return _drive(case, folder, serve)


def _drive(case: Case, folder: Path, serve: bool) -> str:
    dice = random.Random(case.seed)
    before, events = healthy(case.name)
    write(case.files, folder)
    try:
        profile = load(str(folder), cache=False)
    except StepscopeError as error:
        if not error.what:
            raise Lost("an error without words") from error
        if case.rows is not None:
            raise Lost(f"{case.rows} bad rows cost the whole file: {error.what}") from error
        if serve:
            ask_server(folder, dice, None)
        return "refused"
    if case.rows is not None and _events(profile) < events - 2 * case.rows:  # a begin may lose its end
        raise Lost(f"{case.rows} bad rows cost {events - _events(profile)} of {events} events")
    side = read_side(profile, Options(limit=0))
    _check_sections(case, side.report, before)
    _render(side.report)
    _compare(dice, before, side)
    _export(dice, profile)
    list(info_text.lines(overview(profile), verbose=True))
    if serve:
        ask_server(folder, dice, side.report)
    return "read"


def _events(profile: Profile) -> int:
    return sum(len(trace.events) for trace in profile.traces)


def _check_sections(case: Case, report: Report, before: Side) -> None:
    lost = [problem.detail for problem in report.problems if problem.code == _LOST]
    if lost:
        raise Lost(f"a section is lost: {lost}")
    if case.rows is None:
        return
    for section, enough in _ROWS.items():
        had = getattr(before.report, section).rows
        has = getattr(report, section).rows
        if len(had) >= enough + case.rows and not has:
            raise Lost(f"{case.rows} bad rows cost all {len(had)} rows of {section}")


def _render(report: Report) -> None:
    for form in ("text", "md", "html", "json"):
        text = written(report, form)
        text.encode()
        if form == "json":
            json.loads(text, parse_constant=_refuse_constant)
    for _, text in csv_tables(report):
        text.encode()


def _refuse_constant(word: str) -> None:
    raise Lost(f"{word} in JSON")


def _compare(dice: random.Random, before: Side, side: Side) -> None:
    a, b = (before, side) if dice.random() < 0.7 else (side, before)
    found = diff_sides(a, b)
    for form in ("text", "md", "html", "json", "folded"):
        diff_write.written(found, form).encode()
    list(gate_lines(check_diff(found, growth(["5%", "peak_memory=3%", "compute=10%"])), 100))
    each_step(side.samples.cells)


def _export(dice: random.Random, profile: Profile) -> None:
    if len(profile.ranks) > 1:
        times = rank_times(profile)
        parts = [
            RankPart(rank, trace, times[rank].common)
            for rank, trace in zip(profile.ranks, profile.traces, strict=True)
        ]
        pieces = merged_text(parts, told([times[rank] for rank in profile.ranks]))
    else:
        pieces = chrome_text(profile.traces[0])
    text = io.StringIO()
    for piece in pieces:
        text.write(piece)
    json.loads(text.getvalue(), parse_constant=_refuse_constant)
    if dice.random() < 0.1:
        with tempfile.TemporaryDirectory() as folder:
            target = parquet(profile, Path(folder, "tables"))
            for path in target.iterdir():
                pl.read_parquet(path)
