"""Ours: from the file to the first view of its trace viewer: the layout and the tiles of the whole trace, all rows."""

from __future__ import annotations

import math
from typing import Any

import stepscope
from benchmarks.drivers.meter import report
from benchmarks.drivers.ours import import_everything
from stepscope.profiles.cache import background
from stepscope.server.timeline import routes, tiles
from stepscope.server.timeline.extent import extent_of
from stepscope.server.timeline.layout import groups_of
from stepscope.server.timeline.store import store_of

WIDTH = 1700  # pixels


def load(path: str) -> dict[str, Any]:
    """What the page asks for before it paints."""
    trace = stepscope.load(path).traces[0]
    store = store_of(trace)
    extent = extent_of(trace, store)
    groups = groups_of(trace, store)
    level = round(math.log2((extent.end_ns - extent.start_ns) / WIDTH))
    first, last = (moment >> (level + tiles.BUCKET_BITS) for moment in (extent.start_ns, extent.end_ns))
    blocks = list(range(-(-len(store.rows) // tiles.BLOCK_ROWS)))
    bodies = [tiles.packed(tiles.tile(store, level, index, blocks)) for index in range(first, last + 1)]
    names = store.names.slice(0, routes.NAMES_OF_PAGE).to_list()
    return {
        "bytes": sum(map(len, bodies)),
        "rows": len(store.rows),
        "groups": len(groups),
        "names": len(names),
    }


if __name__ == "__main__":
    import_everything()
    report(load, background.wait)
