"""The routes of the trace viewer, below api/runs/{id}/timeline/."""

from __future__ import annotations

import msgspec

from stepscope.formats.own_export.write import chrome_text
from stepscope.profiles.export import default_name
from stepscope.server.api.export import packed_pieces
from stepscope.server.api.routes import (
    FOREVER,
    Answer,
    Ask,
    Binary,
    Json,
    RunRoute,
    Stream,
    download,
    kept_first,
)
from stepscope.server.http.request import BadRequest, Query, Refused
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.timeline import tiles
from stepscope.server.timeline.alignment import beside
from stepscope.server.timeline.counters import counter_tile, known_counters
from stepscope.server.timeline.details import event_arguments, event_details
from stepscope.server.timeline.layers import LAYERS, layer_of, part_totals, path_at, span_details
from stepscope.server.timeline.layout import groups_of
from stepscope.server.timeline.meeting import MOST_RANKS, meeting_of
from stepscope.server.timeline.merged import MERGED, merged_of
from stepscope.server.timeline.pivot import GROUPS
from stepscope.server.timeline.ranges import condition, cut_out, groups, totals
from stepscope.server.timeline.search import LONGEST_TEXT, counts_of_ranks, found, listed, search
from stepscope.server.timeline.store import Store
from stepscope.server.timeline.view import HIGHEST_RANK, View, need_key, rank_of, view_at, view_of
from stepscope.server.timeline.waits import waits_of

NAMES_OF_PAGE = 1024
COMPRESSED_FROM = 1024
HIGHEST_ID = 2**32 - 1
MOST_TRACKS = 2_000


def layout(ask: Ask) -> Answer:
    """The tracks of one rank, and how its time relates to that of another (`beside`)."""
    run, query = ask.run, ask.query
    rank = rank_of(run, query, "rank")
    shown = rank_of(run, query, "beside") if query.has("beside") else rank
    placed = beside(run, rank, shown)
    moved = shown if placed.is_bent else None
    view = view_at(run, rank, moved)
    info = view.trace.info
    return Json(
        {
            "key": run.key,
            "rank": view.rank,
            "ranks": run.profile.ranks,
            "shift_ns": placed.shift_ns,
            "moved": moved,
            "clock": placed.clock,
            "start_ns": view.extent.start_ns,
            "end_ns": view.extent.end_ns,
            "base_unix_ns": str(info.base_unix_ns) if info.base_unix_ns else None,
            "events": len(view.trace.events),
            "events_of_all": run.kept("events of all ranks", lambda: _events_of_all(run)),
            "rows": len(view.store.rows),
            "names": len(view.store.names),
            "groups": groups_of(view.trace, view.store),
            "layers": LAYERS,
        }
    )


def _events_of_all(run: OpenedRun) -> int:
    return sum(len(trace.events) for trace in run.profile.traces)


def names(ask: Ask) -> Answer:
    """A page of the names that labels refer to."""
    need_key(ask.run, ask.query)
    store = _store(view_of(ask.run, ask.query), ask.query)
    page = ask.query.integer("page", 0, tiles.DEEPEST_LEVEL << 20, 0)
    found = store.names.slice(page * NAMES_OF_PAGE, NAMES_OF_PAGE).to_list()
    return Binary(msgspec.json.encode(found), "application/json", FOREVER)


def tile(ask: Ask) -> Answer:
    """Some rows at one level of detail; see `tiles` for the bytes."""
    need_key(ask.run, ask.query)
    view = view_of(ask.run, ask.query)
    blocks = ask.query.integers("blocks", tiles.MOST_BLOCKS, high=2**32)
    return _kept(tiles.tile(_store(view, ask.query), *_place(ask.query), blocks))


def counter_list(ask: Ask) -> Answer:
    """Which counters there are; not part of the layout, since it wants a look at more tables."""
    return Json({"counters": known_counters(view_of(ask.run, ask.query))})


def counter(ask: Ask) -> Answer:
    """A counter at one level of detail."""
    need_key(ask.run, ask.query)
    data = counter_tile(view_of(ask.run, ask.query), ask.query.text("counter", 100), *_place(ask.query))
    if data is None:
        raise Refused("There is no such counter.", status=404, where="counter")
    return _kept(data)


def layer(ask: Ask) -> Answer:
    """The rows of a layer, as soon as it is worked out."""
    name = ask.query.choice("layer", LAYERS)
    return Json({"rows": layer_of(view_of(ask.run, ask.query), name).rows})


def event(ask: Ask) -> Answer:
    """One event, or one slice of a layer."""
    view, name = view_of(ask.run, ask.query), _layer_name(ask.query)
    number = ask.query.integer("id", 0, HIGHEST_ID)
    if name is None:
        return Json(event_details(view, view.event(number)))
    details = span_details(view, name, number)
    if details is None:
        raise BadRequest("There is no such slice.", where="id")
    return Json(details)


def arguments(ask: Ask) -> Answer:
    """What the file said of an event beyond the tables."""
    view = view_of(ask.run, ask.query)
    number = view.event(ask.query.integer("id", 0, HIGHEST_ID))
    name = f"timeline arguments {view.rank} {number}"
    found = ask.run.later(name, lambda: event_arguments(view.trace, number), "unpacking")
    return Json({"arguments": found})


def waits(ask: Ask) -> Answer:
    """What an event waited for, and what waited for it."""
    view = view_of(ask.run, ask.query)
    return Json(waits_of(view, view.event(ask.query.integer("id", 0, HIGHEST_ID))))


def meeting(ask: Ask) -> Answer:
    """The same collective on the ranks that are in view, on the clock of the one that is shown."""
    run, query = ask.run, ask.query
    rank, shown = rank_of(run, query, "rank"), rank_of(run, query, "beside")
    ranks = [
        each for each in query.integers("ranks", MOST_RANKS, high=HIGHEST_RANK) if each in run.profile.ranks
    ]
    number = view_at(run, rank).event(query.integer("id", 0, HIGHEST_ID))
    return Json({"calls": meeting_of(run, rank, number, ranks, shown)})


def neighbour(ask: Ask) -> Answer:
    """The slice before or after in the same row; null at its ends."""
    view, name = view_of(ask.run, ask.query), _layer_name(ask.query)
    number, by = ask.query.integer("id", 0, HIGHEST_ID), ask.query.integer("by", -1, 1)
    if name is None:
        row = view.trace.events.row(view.event(number), named=True)
        store, track, depth, start = view.store, row["track"], row["depth"], row["start_ns"]
    else:
        spans = layer_of(view, name).spans
        if number >= len(spans):
            raise BadRequest("There is no such slice.", where="id")
        store, track, depth = layer_of(view, name).store, int(spans["row"][number]), 0
        start = int(spans["start_ns"][number])
    return Json({"id": _beside(store, number, store.row_of(number, track, depth, start), start, by)})


def on_path(ask: Ask) -> Answer:
    """The slice of the critical path at a moment."""
    at = ask.query.integer("at", -tiles.FURTHEST_NS, tiles.FURTHEST_NS)
    return Json({"id": path_at(view_of(ask.run, ask.query), at)})


def _beside(store: Store, number: int, row: int | None, start: int, by: int) -> int | None:
    place = None if row is None else store.place(number, row, start)
    if row is None or place is None or not store.first[row] <= place + by < store.first[row + 1]:
        return None
    return store.order[place + by]


def search_all(ask: Ask) -> Answer:
    """All events that match."""
    return Json(search(view_of(ask.run, ask.query), _text(ask.query)))


def search_list(ask: Ask) -> Answer:
    """Some of the hits, in the order of time."""
    first = ask.query.integer("first", 0, HIGHEST_ID, 0)
    return Json(listed(view_of(ask.run, ask.query), _text(ask.query), first))


def search_ranks(ask: Ask) -> Answer:
    """How many events of every rank match."""
    run, text = ask.run, _text(ask.query)
    found = run.later(f"timeline hits {text}", lambda: counts_of_ranks(run, text), "searching")
    return Json({"count": sum(each["count"] for each in found), "ranks": found})


def search_next(ask: Ask) -> Answer:
    """The hit after or before a moment or an event."""
    query = ask.query
    at = query.integer("at", -tiles.FURTHEST_NS, tiles.FURTHEST_NS, 0)
    event = query.maybe_integer("id", 0, HIGHEST_ID)
    return Json(found(view_of(ask.run, query), _text(query), at, event, query.integer("by", -1, 1, 1) or 1))


def range_totals(ask: Ask) -> Answer:
    """Totals by name and track, and how busy the devices were."""
    view, (start, end) = view_of(ask.run, ask.query), _range(ask.query)
    return Json(totals(view, start, end, _tracks(ask.query)))


def range_groups(ask: Ask) -> Answer:
    """Totals by category or module."""
    view, (start, end) = view_of(ask.run, ask.query), _range(ask.query)
    return Json(groups(view, start, end, _tracks(ask.query), ask.query.choice("by", GROUPS)))


def range_where(ask: Ask) -> Answer:
    """What follows WHERE in a query for the events of a range."""
    view, (start, end) = view_of(ask.run, ask.query), _range(ask.query)
    return Json({"where": condition(view, start, end, _tracks(ask.query))})


def range_chrome(ask: Ask) -> Answer:
    """The events that reach into a range as Chrome trace JSON, packed while it is sent."""
    view, (start, end) = view_of(ask.run, ask.query), _range(ask.query)
    name = default_name(ask.run.profile, "chrome", True).name.replace(
        ".chrome.", f".rank{view.rank}.range.chrome."
    )
    return Stream(
        packed_pieces(chrome_text(cut_out(view, start, end, _tracks(ask.query)))),
        "application/gzip",
        download(name),
    )


def _tracks(query: Query) -> list[int]:
    return sorted(set(query.integers("tracks", MOST_TRACKS, high=2**32 - 2)))


def range_parts(ask: Ask) -> Answer:
    """The account of a range."""
    view, (start, end) = view_of(ask.run, ask.query), _range(ask.query)
    return Json({"parts": part_totals(view, start, end)})


def _text(query: Query) -> str:
    text = query.text("q", LONGEST_TEXT)
    if not text.strip():
        raise BadRequest("q is empty.", where="q")
    return text


def _range(query: Query) -> tuple[int, int]:
    start, end = (query.integer(name, -tiles.FURTHEST_NS, tiles.FURTHEST_NS) for name in ("start", "end"))
    if end <= start:
        raise BadRequest("end must come after start.", where="end")
    return start, end


def _place(query: Query) -> tuple[int, int]:
    level = query.integer("level", 0, tiles.DEEPEST_LEVEL)
    index = query.integer("index", -(2**52), 2**52)
    if not tiles.is_in_time(level, index):
        raise BadRequest("No trace reaches that far.", where="index")
    return level, index


def _layer_name(query: Query) -> str | None:
    return query.choice("layer", LAYERS) if query.has("layer") else None


def _store(view: View, query: Query) -> Store:
    name = query.choice("layer", (*LAYERS, MERGED)) if query.has("layer") else None
    if name == MERGED:
        return merged_of(view)
    return view.store if name is None else layer_of(view, name).store


def _kept(data: bytes) -> Binary:
    """Kept by the browser: its address has the content's key in it."""
    if len(data) < COMPRESSED_FROM:
        return Binary(data, headers=FOREVER)
    return Binary(tiles.packed(data), headers={**FOREVER, "Content-Encoding": "gzip"})


ROUTES: tuple[RunRoute, ...] = (
    kept_first("timeline/layout", layout),
    kept_first("timeline/names", names),
    kept_first("timeline/tiles", tile),
    RunRoute("timeline/counters", counter_list),
    RunRoute("timeline/counter", counter),
    RunRoute("timeline/layer", layer),
    RunRoute("timeline/event", event),
    RunRoute("timeline/arguments", arguments),
    RunRoute("timeline/waits", waits),
    RunRoute("timeline/meeting", meeting),
    RunRoute("timeline/neighbour", neighbour),
    RunRoute("timeline/path", on_path),
    RunRoute("timeline/search", search_all),
    RunRoute("timeline/hits", search_ranks),
    RunRoute("timeline/hitlist", search_list),
    RunRoute("timeline/found", search_next),
    RunRoute("timeline/range", range_totals),
    RunRoute("timeline/parts", range_parts),
    RunRoute("timeline/pivot", range_groups),
    RunRoute("timeline/where", range_where),
    RunRoute("timeline/chrome", range_chrome),
)
