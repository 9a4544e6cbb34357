"""The routes of the trace viewer, below api/runs/{id}/timeline/."""

from __future__ import annotations

import msgspec

from stepscope.server.request import BadRequest
from stepscope.server.routes import FOREVER, Answer, Ask, Binary, Json, RunRoute
from stepscope.server.timeline import tiles
from stepscope.server.timeline.extent import shift_between
from stepscope.server.timeline.layout import groups_of
from stepscope.server.timeline.view import need_key, view_of

NAMES_OF_PAGE = 1024
COMPRESSED_FROM = 1024


def layout(ask: Ask) -> Answer:
    """The tracks of one rank, and how its time relates to that of another (`beside`)."""
    view = view_of(ask.run, ask.query)
    beside = view_of(ask.run, ask.query, "beside") if ask.query.has("beside") else view
    shift = 0
    if beside.rank != view.rank:
        shift = shift_between(beside.trace, beside.extent, view.trace, view.extent)
    info = view.trace.info
    return Json(
        {
            "key": ask.run.key,
            "rank": view.rank,
            "ranks": ask.run.profile.ranks,
            "shift_ns": shift,
            "start_ns": view.extent.start_ns,
            "end_ns": view.extent.end_ns,
            "base_unix_ns": str(info.base_unix_ns) if info.base_unix_ns else None,
            "events": len(view.trace.events),
            "rows": len(view.store.rows),
            "names": len(view.store.names),
            "groups": groups_of(view.trace, view.store),
            "counters": [],
            "layers": [],
        }
    )


def names(ask: Ask) -> Answer:
    """A page of the names that labels refer to."""
    need_key(ask.run, ask.query)
    store = view_of(ask.run, ask.query).store
    page = ask.query.integer("page", 0, tiles.DEEPEST_LEVEL << 20, 0)
    found = store.names.slice(page * NAMES_OF_PAGE, NAMES_OF_PAGE).to_list()
    return Binary(msgspec.json.encode(found), "application/json", FOREVER)


def tile(ask: Ask) -> Answer:
    """Some rows at one level of detail; see `tiles` for the bytes."""
    need_key(ask.run, ask.query)
    view = view_of(ask.run, ask.query)
    level = ask.query.integer("level", 0, tiles.DEEPEST_LEVEL)
    index = ask.query.integer("index", -(2**52), 2**52)
    blocks = ask.query.integers("blocks", tiles.MOST_BLOCKS, high=2**32)
    if not tiles.is_in_time(level, index):
        raise BadRequest("No trace reaches that far.", where="index")
    data = tiles.tile(view.store, level, index, blocks)
    if len(data) < COMPRESSED_FROM:
        return Binary(data, headers=FOREVER)
    return Binary(tiles.packed(data), headers={**FOREVER, "Content-Encoding": "gzip"})


ROUTES: tuple[RunRoute, ...] = (
    RunRoute("timeline/layout", layout),
    RunRoute("timeline/names", names),
    RunRoute("timeline/tiles", tile),
)
