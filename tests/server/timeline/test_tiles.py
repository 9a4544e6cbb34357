"""What a tile shows is true: for random views it is what a plain computation over all events gives."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.server.timeline.conftest import Item, Viewer

PROFILES = ("gpt.pt.trace.json.gz", "jax.xplane.pb.gz", "graph.pt.trace.json.gz")
Slices = list[tuple[int, int, int]]  # id, start, duration


@pytest.fixture(params=PROFILES)
def shown(request: pytest.FixtureRequest, viewer: Callable[[str], Viewer]) -> Viewer:
    return viewer(request.param)


def rows_of(viewer: Viewer) -> tuple[list[Slices], list[int]]:
    """The slices of each row, and all blocks: a row is found again by asking for everything at full width."""
    layout = viewer.get("layout")
    blocks = list(range(-(-layout["rows"] // 8)))
    events = viewer.trace.events
    by_depth: dict[tuple[int, int], Slices] = defaultdict(list)
    columns = (events[name].to_list() for name in ("id", "track", "depth", "start_ns", "dur_ns"))
    for number, track, depth, start, dur in zip(*columns, strict=True):
        by_depth[track, depth].append((number, start, dur))
    rows: list[Slices] = []
    for key in sorted(by_depth):
        rows += lanes(by_depth[key])
    assert len(rows) == layout["rows"]
    return rows, blocks


def lanes(slices: Slices) -> list[Slices]:
    """Those that overlap in rows of their own: each in the first that is free."""
    found: list[Slices] = []
    for each in slices:
        free = next((lane for lane in found if lane[-1][1] + lane[-1][2] <= each[1]), None)
        if free is None:
            found.append([each])
        else:
            free.append(each)
    return found


def expected(slices: Slices, begin: int, level: int) -> set[tuple[int, int]]:
    """(id, count): long slices themselves, of the others the longest that begins in a bucket."""
    end, step = begin + (1024 << level), 1 << level
    found = {
        (number, 1) for number, start, dur in slices if dur >= step and start < end and start + dur > begin
    }
    short: dict[int, Slices] = defaultdict(list)
    for each in slices:
        if each[2] < step and begin <= each[1] < end:
            short[(each[1] - begin) >> level].append(each)
    return found | {(max(held, key=lambda each: each[2])[0], len(held)) for held in short.values()}


def views(viewer: Viewer, count: int, seed: int) -> list[tuple[int, int]]:
    """Random levels and tiles, near and far."""
    layout = viewer.get("layout")
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        level = chance.randrange(0, 28)
        moment = chance.randrange(layout["start_ns"] - 1000, layout["end_ns"] + 1000)
        found.append((level, moment >> (level + 10)))
    return found


def test_random_views_show_what_a_plain_computation_finds(shown: Viewer) -> None:
    rows, blocks = rows_of(shown)
    for level, index in views(shown, 60, seed=5):
        tile = shown.tile(level, index, blocks)
        assert sorted(tile) == list(range(len(rows)))
        for row, slices in enumerate(rows):
            found = {(number, count) for _, _, number, _, count in tile[row]}
            assert found == expected(slices, index << (level + 10), level), (level, index, row)


def test_nothing_is_missing_at_full_zoom(shown: Viewer) -> None:
    rows, blocks = rows_of(shown)
    chance = random.Random(7)
    for _ in range(40):
        row = chance.randrange(len(rows))
        number, start, dur = chance.choice(rows[row])
        tile = shown.tile(0, start >> 10, blocks)
        begin = (start >> 10) << 10
        item = next(item for item in tile[row] if item[2] == number or not dur)
        if dur:
            assert item[0] == start - begin
            assert item[1] == dur
            assert item[4] == 1
        together = [each for each in rows[row] if begin <= each[1] < begin + 1024]
        assert sum(each[4] for each in tile[row] if each[0] >= 0) == len(together)


def test_times_of_far_away_views_are_right_to_a_fraction_of_a_pixel(shown: Viewer) -> None:
    rows, blocks = rows_of(shown)
    layout = shown.get("layout")
    level = (layout["end_ns"] - layout["start_ns"]).bit_length() - 9
    unit = 1 << max(0, level - 8)
    index = layout["start_ns"] >> (level + 10)
    begin = index << (level + 10)
    by_id = {number: (start, dur) for slices in rows for number, start, dur in slices}
    for items in shown.tile(level, index, blocks).values():
        for start, dur, number, _, _ in items:
            told, length = by_id[number]
            assert abs(begin + start * unit - told) <= unit
            assert abs(dur * unit - length) <= 2 * unit


def test_labels_lead_to_names_and_styles(viewer: Callable[[], Viewer]) -> None:
    one = viewer()
    pages = one.get("names", key=one.key, page=0)
    assert len(pages) == one.get("layout")["names"] <= 1024
    events = one.trace.events
    for items in one.tile(20, one.get("layout")["start_ns"] >> 30, list(range(8))).values():
        for _, _, number, label, _ in items:
            assert pages[label & 0xFFFFFF] == events["name"][number]
            assert label >> 24 < 34
            if events["kind"][number] == "copy":
                assert label >> 24 == 18


def test_rows_that_do_not_exist_are_left_out(viewer: Callable[[], Viewer]) -> None:
    one = viewer()
    assert one.tile(10, 0, [10_000]) == {}
    assert one.tile(10, 0, []) == {}


def item_counts(items: list[Item]) -> int:
    """How many slices the items stand for."""
    return sum(item[4] for item in items)


def test_the_widest_view_counts_every_event(viewer: Callable[[], Viewer]) -> None:
    one = viewer()
    level = 34
    index = one.get("layout")["start_ns"] >> (level + 10)
    tile = one.tile(level, index, list(range(16)))
    assert sum(item_counts(items) for items in tile.values()) == len(one.trace.events)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"level": 45, "index": 0, "blocks": "0"}, 400),
        ({"level": -1, "index": 0, "blocks": "0"}, 400),
        ({"level": 40, "index": 2**52, "blocks": "0"}, 400),
        ({"level": 10, "index": "x", "blocks": "0"}, 400),
        ({"level": 10, "index": 0, "blocks": "1,-3"}, 400),
        ({"level": 10, "index": 0, "blocks": ",".join(["1"] * 65)}, 400),
        ({"level": 10, "index": 0, "blocks": "0", "layer": "nothing"}, 400),
        ({"level": 10, "index": 0, "blocks": "0", "rank": 9}, 404),
        ({"level": 10, "index": 0, "blocks": "0", "key": "stale"}, 409),
        ({"index": 0, "blocks": "0"}, 400),
    ],
)
def test_absurd_tiles_are_refused(viewer: Callable[[], Viewer], query: dict[str, Any], status: int) -> None:
    one = viewer()
    answer = one.answer("tiles", **{"key": one.key, **query})
    assert answer.status_code == status
    assert answer.get_json()["error"]["what"]
