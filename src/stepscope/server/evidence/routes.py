"""api/runs/{id}/events: the events behind a row, a mark or a finding, the worst first, with their places in the trace viewer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.server.api.context import context_of
from stepscope.server.api.report import HIGHEST_RANK, whole_report
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.evidence.found import Found, find_events
from stepscope.server.evidence.handle import Handle, handle_of
from stepscope.server.http.request import BadRequest, Refused
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.timeline.details import row_of, thread_name
from stepscope.server.timeline.view import View, view_at

MOST_EVENTS = 500
MOST_RANKS = 8  # that are looked through for one answer
MOST_NAMES = 5_000


class EventFound(msgspec.Struct):
    """One of them. `weight` is what it is sorted by; `after_ns` and `dur_ns` are of the time that counts, of the event unless it is charged for less."""

    rank: int
    id: int | None
    name: str
    thread: str
    step: int | None
    weight: int
    after_ns: int
    dur_ns: int
    row: int | None


def events(ask: Ask) -> Answer:
    """What the handle `of` means; see docs/page/trace.md for the kinds of handles."""
    handle = handle_of(ask.query)
    rank = ask.query.maybe_integer("rank", 0, HIGHEST_RANK)
    if rank is not None and rank not in ask.run.profile.ranks:
        raise Refused(f"There is no rank {rank}.", status=404, where="rank")
    title, handle, rank = _of_worst_rank(ask.run, handle, rank)
    ranks = list(ask.run.profile.ranks) if rank is None and handle.kind != "event" else _one(ask.run, rank)
    looked = ranks[:MOST_RANKS]
    name = f"events {looked} {handle.key}"
    found = ask.run.later(name, lambda: _answer(ask.run, handle, looked), "looking for the events")
    return Json({**found, "title": title, "ranks": looked, "ranks_total": len(ranks)})


def _one(run: OpenedRun, rank: int | None) -> list[int]:
    return [run.profile.ranks[0] if rank is None else rank]


def _of_worst_rank(run: OpenedRun, handle: Handle, rank: int | None) -> tuple[str | None, Handle, int | None]:
    """A finding by its code, whatever number it was asked for by; the report says what it is called, and on which rank it costs most."""
    if handle.kind != "finding":
        return None, handle, rank
    findings = whole_report(run, rank).findings
    places = {str(at + 1): each for at, each in enumerate(findings)}
    chosen = places.get(handle.name) or next((each for each in findings if each.code == handle.name), None)
    if chosen is None:
        raise Refused("There is no such finding.", status=404, where="of")
    worst = chosen.evidence.get("rank")
    of_rank = worst if rank is None and worst in run.profile.ranks else rank
    if chosen.code == "straggler":  # what the others wait for shows in the collectives of the late rank
        return chosen.title, Handle("collective", "", {}), of_rank
    return chosen.title, Handle("finding", chosen.code, {}), of_rank


def _answer(run: OpenedRun, handle: Handle, ranks: list[int]) -> dict[str, Any]:
    shown: list[EventFound] = []
    total, unit, by, span, names = 0, "ns", "", None, {}
    for rank in ranks:
        view = view_at(run, rank)
        found = find_events(handle, _frames(run, rank))
        _check_ids(view, found)
        total, unit, by = total + len(found.rows), found.unit, found.by
        span = _placed(view, found) if span is None else span
        shown += _shown(view, found)
        names[str(rank)] = _name_numbers(view, found)
    if len(ranks) > 1:
        shown.sort(key=lambda each: (-each.weight, each.rank, each.id or 0))
    kept = shown[:MOST_EVENTS]
    return {"kind": handle.kind, "name": handle.name, "unit": unit, "by": by, "total": total, "span": span, "names": names, "events": kept}  # fmt: skip


def _frames(run: OpenedRun, rank: int) -> Callable[..., pl.DataFrame]:
    """Frames of the rank by name: kept while there is room, and made of one context."""
    context = context_of(run, rank)

    def frame(name: str, make: Callable[[RankContext], pl.DataFrame]) -> pl.DataFrame:
        return run.kept(f"evidence {name} {rank}", lambda: make(context))

    return frame


def _check_ids(view: View, found: Found) -> None:
    highest = found.rows["event"].max()
    lowest = found.rows["event"].min()
    if isinstance(highest, int) and isinstance(lowest, int):
        view.event(highest)
    elif len(found.rows) and found.rows["start_ns"].null_count():
        raise BadRequest("There is no such event.", where="of")


def _placed(view: View, found: Found) -> dict[str, int] | None:
    if found.span is None:
        return None
    begin, end = view.extent.start_ns, view.extent.end_ns
    low, high = (min(max(each, begin), end) for each in found.span)
    return {"rank": view.rank, "after_ns": low - begin, "dur_ns": high - low}


def _shown(view: View, found: Found) -> list[EventFound]:
    rows = found.rows.head(MOST_EVENTS)
    own = view.trace.events.select("id", "name", "track", "depth", "step", "start_ns", "dur_ns")
    facts = {row["id"]: row for row in own[rows["event"].drop_nulls().unique()].iter_rows(named=True)}
    threads = {track: thread_name(view.trace, track) for track in {each["track"] for each in facts.values()}}
    return [_event(view, row, facts.get(row["event"]), threads) for row in rows.iter_rows(named=True)]


def _event(
    view: View, row: dict[str, Any], event: dict[str, Any] | None, threads: dict[int, str]
) -> EventFound:
    start = row["start_ns"] if row["start_ns"] is not None or event is None else event["start_ns"]
    end = row["end_ns"] if row["end_ns"] is not None or event is None else start + event["dur_ns"]
    return EventFound(
        rank=view.rank,
        id=row["event"],
        name="" if event is None else event["name"] or "",
        thread="" if event is None else threads[event["track"]],
        step=None if event is None else event["step"],
        weight=row["weight"],
        after_ns=start - view.extent.start_ns,
        dur_ns=end - start,
        row=None if event is None else row_of(view, event),
    )


def _name_numbers(view: View, found: Found) -> list[int]:
    """The numbers of their names in the picture, where all others are dimmed; too many would show nothing."""
    codes = view.trace.events["name"].gather(found.rows["event"].drop_nulls()).unique().cast(pl.String)
    numbers = view.store.names.is_in(codes.drop_nulls().implode()).arg_true()
    return numbers.to_list() if len(numbers) <= MOST_NAMES else []


ROUTES = (RunRoute("events", events),)
