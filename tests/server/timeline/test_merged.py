"""A folded device is one row of all its streams: what a plain computation over their events gives."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from tests.server.timeline.conftest import Viewer
from tests.server.timeline.test_tiles import expected, views

PROFILES = ("gpt.pt.trace.json.gz", "jax.xplane.pb.gz", "graph.pt.trace.json.gz")


@pytest.mark.parametrize("name", PROFILES)
def test_a_folded_device_shows_the_events_of_all_its_streams(
    name: str, viewer: Callable[[str], Viewer]
) -> None:
    one = viewer(name)
    groups = [group for group in one.get("layout")["groups"] if group["device"] is not None]
    assert [group["merged"] for group in groups] == list(range(len(groups)))
    for level, index in views(one, 12, seed=3):
        tile = one.tile(level, index, [0], layer="merged")
        for group in groups:
            streams = [track["id"] for track in group["tracks"] if track["what"] == "device"]
            chosen = one.trace.events.filter(pl.col("track").is_in(streams))
            slices = sorted(
                chosen.select("id", "start_ns", "dur_ns").rows(), key=lambda row: (row[1], -row[2])
            )
            found = {(number, count) for _, _, number, _, count in tile[group["merged"]]}
            assert found == expected(slices, index << (level + 10), level)


def test_processes_have_no_merged_row(viewer: Callable[[], Viewer]) -> None:
    groups = viewer().get("layout")["groups"]
    assert all(group["merged"] is None for group in groups if group["device"] is None)


def test_details_and_neighbours_are_those_of_events(viewer: Callable[[], Viewer]) -> None:
    """The merged row has no slices of its own to ask about."""
    assert viewer().answer("event", id=0, layer="merged").status_code == 400
