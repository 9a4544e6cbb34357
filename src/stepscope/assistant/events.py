"""The events behind a handle, the worst first, in the words of an answer."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope import units
from stepscope.analysis.context import RankContext
from stepscope.assistant.behind import find_behind
from stepscope.assistant.tokens import Block, fit_blocks
from stepscope.assistant.untrusted import NOTE, quote
from stepscope.profiles.profile import Profile
from stepscope.registers.policy.assistant import ANSWER_ROWS, ANSWER_TOKENS
from stepscope.reports.model.report import Report
from stepscope.reports.render.brief import brief_name
from stepscope.server.evidence.found import Found


def as_events(
    profile: Profile, report: Report, wanted: str, rank: int | None = None, budget: int = ANSWER_TOKENS
) -> str:
    """The events that the handle means, on one rank: the given one, that of the finding, or the first."""
    behind = find_behind(profile, report, wanted, rank)
    rows, found = behind.rows, behind.found
    title = f"rank {behind.rank}: {len(rows)} events by {found.by}; id, start, duration, step, name"
    shown = [*_lines(behind.context, rows.head(ANSWER_ROWS), found)]
    return fit_blocks([Block("", [NOTE], 1), Block(title, shown, 5, len(rows) - len(shown))], budget)


def _lines(context: RankContext, rows: pl.DataFrame, found: Found) -> Iterator[str]:
    events = context.trace.events.select("id", "name", "start_ns", "dur_ns", "step")
    known = {row["id"]: row for row in events[rows["event"].unique()].iter_rows(named=True)}
    begin = context.trace.events["start_ns"].min() or 0
    for row in rows.iter_rows(named=True):
        event = known[row["event"]]
        start = units.duration(event["start_ns"] - begin)
        weight = "" if found.by == "duration" else f", {_weight(row['weight'], found.unit)} of it counted"
        yield (
            f"event:{event['id']} {start} {units.duration(event['dur_ns'])} {event['step']} "
            f"{quote(brief_name(event['name'] or ''))}{weight}"
        )


def _weight(weight: int, unit: str) -> str:
    return units.size(weight) if unit == "bytes" else units.duration(weight)
