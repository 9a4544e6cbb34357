"""What an assistant may ask, each answer a text within its budget. Nothing is written but the cache of profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope import units
from stepscope.assistant.about import as_about, find_finding
from stepscope.assistant.folders import Folders
from stepscope.assistant.handles import is_handle, parse_handle
from stepscope.assistant.summary import as_findings, as_summary
from stepscope.assistant.tokens import Block, fit_blocks
from stepscope.assistant.untrusted import NOTE, Quoter, clean, quote
from stepscope.errors import StepscopeError
from stepscope.registers.policy.assistant import (
    ANSWER_ROWS,
    ANSWER_TOKENS,
    LEAST_TOKENS,
    QUERY_SECONDS,
    REPORT_TOKENS,
)
from stepscope.reports.kept import Asked, find_kept

if TYPE_CHECKING:
    import polars as pl

    from stepscope.diffs.data.model import Diff, Line
    from stepscope.profiles.profile import Profile
    from stepscope.profiles.sql.client import Workers
    from stepscope.reports.report import Report

_SENTENCE = 500
_RUNS = 30
_SQL_MEMORY = 1 << 30


class Tools:
    """The answers for profiles below some folders; source code is read below the same ones."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = Folders(folders)
        self._opened: tuple[str, Profile] | None = None
        self._workers: Workers | None = None

    def profiles(self) -> str:
        """The profiles below the folders, the newest first, with the paths that the other tools take."""
        from stepscope.profiles.find.catalog import scan

        runs = [
            (run.time_ns, quote(run.address or run.entries[0].path, 160), len(run.entries), run.size)
            for folder in self._folders.folders
            for run in scan(str(folder)).runs
        ]
        runs.sort(key=lambda run: -run[0])
        lines = [f"{path}, {count} files, {units.size(size)}" for _, path, count, size in runs[:_RUNS]]
        if not lines:
            return "No profiles below the folders of this server.\n"
        return fit_blocks(
            [Block("", [NOTE], 1), Block("profiles", lines, 1, len(runs) - len(lines))], ANSWER_TOKENS
        )

    def report(self, path: str, budget: int = REPORT_TOKENS) -> str:
        """The verdict, findings with intervals and places, what is not known, and handles."""
        return as_summary(self._report(path), max(LEAST_TOKENS, budget))

    def findings(self, path: str) -> str:
        """Only the findings."""
        return as_findings(self._report(path))

    def about(self, path: str, handle: str) -> str:
        """What the report has about a handle."""
        return as_about(self._report(path), handle)

    def events(self, path: str, handle: str, rank: int | None = None) -> str:
        """The events behind a handle, the worst first."""
        from stepscope.assistant.events import as_events

        return as_events(self._profile(path), self._report(path), handle, rank)

    def query(self, path: str, sql: str) -> str:
        """One SELECT over the tables, in a process that can open neither files nor connections; or a handle, for its events."""
        if is_handle(sql):
            return self.events(path, sql)
        from stepscope.profiles.sql.client import Workers
        from stepscope.profiles.sql.wire import Order

        profile = self._profile(path)
        self._workers = self._workers or Workers(1)
        order = Order(sql, QUERY_SECONDS, _SQL_MEMORY, 1, ANSWER_ROWS)
        answer = self._workers.ask(str(profile.path), order, profile.table, QUERY_SECONDS)
        if answer is None:
            raise StepscopeError("Another query is still running.")
        return _as_rows(answer.frame, answer.rows)

    def diff(self, a: str, b: str) -> str:
        """What changed from profile A to profile B, per step, and whether it is more than noise."""
        from stepscope.diffs.build import diff as compare
        from stepscope.profiles.load import load

        return _as_diff(compare(*(load(str(self._folders.find(path))) for path in (a, b))))

    def source(self, path: str, handle: str) -> str:
        """The code around the first place of a finding, where its file is below the folders."""
        finding = find_finding(self._report(path), parse_handle(handle))
        if not finding.where:
            raise StepscopeError("The profile has no stacks for this finding.", fix="Record with stacks.")
        place = finding.where[0]
        lines = [*_code(self._folders.folders, place.file, place.line)]
        return fit_blocks(
            [Block("", [NOTE], 1), Block(quote(f"{place.file}:{place.line}", 160), lines, 20)], ANSWER_TOKENS
        )

    def doctor(self, path: str) -> str:
        """What is wrong with a profile, a folder without one, or a training script."""
        from stepscope.doctor.diagnose import diagnose

        found = diagnose(str(self._folders.find(path)))
        lines = [
            f"{each.severity} {each.code}: {each.title}\n  evidence: {quote(each.evidence, 160)}\n  fix: {clean(each.fix, 300)}"
            for each in found.results
        ]
        title = f"{len(found.failures)} problems, {len(found.notes)} notes, {len(found.passed)} checks passed"
        return fit_blocks([Block("", [NOTE], 1), Block("", [title], 1), Block("", lines, 2)], ANSWER_TOKENS)

    def _report(self, path: str) -> Report:
        place = str(self._folders.find(path))
        kept = find_kept(place)
        known = None if kept is None else kept.get(Asked())
        if known is not None:
            return known
        found: Report = self._profile(path).report()
        return found if kept is None else kept.keep(Asked(), found)

    def _profile(self, path: str) -> Profile:
        """The profile; the last one stays open, since questions come in rows."""
        from stepscope.profiles.load import load

        place = str(self._folders.find(path))
        if self._opened is None or self._opened[0] != place:
            self._opened = place, load(place)
        return self._opened[1]


def _code(folders: Sequence[Path], file: str, line: int) -> Iterator[str]:
    from stepscope.server.api.source import Sources
    from stepscope.server.http.request import Query, Refused

    try:
        found = Sources(folders).around(Query({"file": file, "line": str(line)}))
    except Refused:
        raise StepscopeError(
            f"{clean(file, 200)} is not below the folders of this server.",
            fix="Start `stepscope mcp` also with the folder that the job was started in.",
        ) from None
    for number, text in enumerate(found["lines"], found["first"]):
        yield f"{'>' if number == line else ' '}{number} {quote(text, 120)}"


def _as_rows(frame: pl.DataFrame, total: int) -> str:
    lines = [" | ".join(_cell(value) for value in row) for row in frame.iter_rows()]
    title = " | ".join(clean(column, 60) for column in frame.columns)
    if not lines:
        return f"{title}\nno rows\n"
    return fit_blocks([Block("", [NOTE], 1), Block(title, lines, 1, total - len(frame))], ANSWER_TOKENS)


def _cell(value: object) -> str:
    return quote(value) if isinstance(value, str) else clean(value, 80)


def _as_diff(diff: Diff) -> str:
    quoter = Quoter(_names(diff))
    changes = [
        (word, quoter.sentence(each.title, _SENTENCE))
        for word, findings in (("gained", diff.gained), ("lost", diff.lost))
        for each in findings
    ]
    blocks = [
        Block("", [NOTE], 1),
        Block("verdict", [quoter.sentence(diff.verdict, _SENTENCE)], 1),
        Block("not comparable", [quoter.sentence(each, _SENTENCE) for each in diff.not_comparable], 1),
        Block("what explains it, per step", [_line(line, quoter) for line in diff.lines], 3),
        Block("findings", [f"{word}: {title}" for word, title in changes], 2),
    ]
    return fit_blocks(blocks, ANSWER_TOKENS)


def _line(line: Line, quoter: Quoter) -> str:
    figure = units.duration if line.unit == "ns" else units.size
    sign = "+" if line.difference >= 0 else "-"
    noise = "" if line.noise is None else f" ± {figure(line.noise)}"
    return f"{sign}{figure(abs(line.difference))}{noise} {quoter.sentence(line.title, _SENTENCE)}"


def _names(diff: Diff) -> Iterator[str]:
    yield from (line.name for line in diff.lines if line.name)
    for rows in (diff.ops, diff.kernels, diff.names, diff.collectives):
        for row in rows.rows:
            yield from filter(None, (row.name, row.scope, row.op))
    yield from (name for run in (diff.a, diff.b) for name in (run.name, run.path, *run.devices) if name)
