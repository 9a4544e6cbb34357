"""The events behind a handle, the worst first, in the words of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from stepscope import units
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.assistant.about import find_finding
from stepscope.assistant.handles import Handle, not_there, parse_handle
from stepscope.assistant.tokens import Block, fit_blocks
from stepscope.assistant.untrusted import NOTE, quote
from stepscope.errors import StepscopeError
from stepscope.profiles.profile import Profile
from stepscope.registers.policy.assistant import ANSWER_ROWS, ANSWER_TOKENS
from stepscope.reports.model.report import Report
from stepscope.reports.render.brief import brief_name
from stepscope.server.evidence.found import Found, find_events
from stepscope.server.evidence.handle import Handle as Evidence

# As the page calls them.
_KINDS = {
    "part": "account",
    "finding": "finding",
    "op": "op",
    "kernel": "kernel",
    "step": "step",
    "event": "event",
}


def as_events(
    profile: Profile, report: Report, wanted: str, rank: int | None = None, budget: int = ANSWER_TOKENS
) -> str:
    """The events that the handle means, on one rank: the given one, that of the finding, or the first."""
    asked = parse_handle(wanted)
    if asked.kind not in _KINDS:
        raise StepscopeError(
            f"No events belong to a {asked.kind}.", fix=f"Kinds with events: {', '.join(_KINDS)}."
        )
    evidence, worst = _evidence(report, asked)
    chosen = rank if rank is not None else worst if worst in profile.ranks else profile.ranks[0]
    context = RankContext(chosen, profile.trace(chosen), Options(region=report.steps.region))
    found = find_events(evidence, _frames(context))
    rows = found.rows.filter(pl.col("event").is_not_null())
    if rows.is_empty():
        raise not_there(asked)
    title = f"rank {chosen}: {len(rows)} events by {found.by}; id, start, duration, step, name"
    shown = [*_lines(context, rows.head(ANSWER_ROWS), found)]
    return fit_blocks([Block("", [NOTE], 1), Block(title, shown, 5, len(rows) - len(shown))], budget)


def _evidence(report: Report, asked: Handle) -> tuple[Evidence, int | None]:
    """The handle of the page that means the same, and the rank on which it costs most."""
    if asked.kind == "finding":
        finding = find_finding(report, asked)
        return Evidence("finding", finding.code, {}), finding.evidence.get("rank")
    name = asked.name
    if asked.kind in ("op", "kernel"):
        rows: list[Any] = [*report.ops.rows] if asked.kind == "op" else [*report.kernels.rows]
        name = next((row.name for row in rows if asked.means(row.name)), name)
    return Evidence(_KINDS[asked.kind], name, {}), None


def _frames(context: RankContext) -> Callable[[str, Callable[[RankContext], pl.DataFrame]], pl.DataFrame]:
    return lambda _, make: make(context)


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
