"""Tiles: what some rows show in an interval, as bytes.

Level k cuts time into buckets of 2**k ns, and BUCKETS of them are a tile; tile 0 begins at the trace's own zero. The
body, all little-endian 32-bit numbers: VERSION, how many rows; for each row its number and how many items it has; then
for all items one after the other their starts (signed), durations, ids, labels and counts. Times are in units of
2**max(0, k - 8) ns from the start of the tile, cut at 2**30 units from it.
"""

from __future__ import annotations

import sys
from array import array

from stepscope.native.view.lod import Window
from stepscope.server.timeline.store import Store

try:
    from isal.igzip import compress as _gzip

    def packed(data: bytes) -> bytes:
        """Compressed with gzip, quickly."""
        return bytes(_gzip(data, compresslevel=1))

except ImportError:  # no wheel for this machine: slower, but the same format
    from gzip import compress as _slow_gzip

    def packed(data: bytes) -> bytes:
        """Compressed with gzip, quickly."""
        return _slow_gzip(data, compresslevel=1)


VERSION = 1
BUCKETS = 1024
BUCKET_BITS = 10
DEEPEST_LEVEL = 44
BLOCK_ROWS = 8  # rows are asked for in blocks, so that the same few addresses come up again
MOST_BLOCKS = 64
FURTHEST_NS = 2**62


def begin_of(level: int, index: int) -> int:
    """When the tile begins."""
    return index << (level + BUCKET_BITS)


def is_in_time(level: int, index: int) -> bool:
    """Whether there can be anything: beyond that no trace reaches."""
    return -FURTHEST_NS <= begin_of(level, index) < FURTHEST_NS - begin_of(level, 1)


def tile(store: Store, level: int, index: int, blocks: list[int]) -> bytes:
    """The rows of the blocks at this level; rows that do not exist are left out."""
    window = Window(begin_of(level, index), level, BUCKETS)
    columns = [array("i"), array("I"), array("I"), array("I")]
    head = array("I")
    for row in _rows(blocks, len(store.rows)):
        head.extend((row, window.fill(store.native, row)))
        for column, found in zip(columns, window.items(), strict=True):
            column.extend(found)
    ids = columns[2]
    front = array("I", [VERSION, len(head) // 2])
    columns.insert(3, store.labels(ids) if ids else array("I"))
    return b"".join(_little(each) for each in (front, head, *columns))


def _rows(blocks: list[int], count: int) -> list[int]:
    numbers = (block * BLOCK_ROWS + at for block in blocks for at in range(BLOCK_ROWS))
    return [row for row in numbers if row < count]


def _little(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()
