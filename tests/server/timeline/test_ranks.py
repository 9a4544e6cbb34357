"""Several ranks in the viewer: on one clock, searched together."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.builders.jobs.gloo_ranks import DRIFTS, OFFSETS, STEPS
from tests.formats.own_export.test_write_merged import ends_by_rank
from tests.server.timeline.conftest import Viewer


def ends(ranks: Viewer, layout: dict[str, Any]) -> list[int]:
    """When the rank's all-reduces end, on the clock of the rank that is shown."""
    of = {"rank": layout["rank"]} | ({} if layout["moved"] is None else {"moved": layout["moved"]})
    found, at, event = [], -(10**15), None
    for turn in range(STEPS):
        more: dict[str, Any] = {} if event is None else {"id": event}
        hit = ranks.get("found", q="gloo:all_reduce", at=at, by=1, **of, **more)
        assert (hit["place"], hit["around"]) == (turn + 1, False)
        at, event = hit["start_ns"], hit["id"]
        told = ranks.get("event", id=event, **of)
        found.append(told["start_ns"] + told["dur_ns"] + layout["shift_ns"])
    return found


@pytest.mark.parametrize("shown", [0, 1])
def test_collectives_end_together_on_the_screen(ranks: Viewer, shown: int) -> None:
    """Whichever rank is shown: the others' events lie on its clock, and it is said how well."""
    own = ends(ranks, ranks.get("layout", rank=shown))
    for rank in set(OFFSETS) - {shown}:
        layout = ranks.get("layout", rank=rank, beside=shown)
        if DRIFTS[rank] != DRIFTS[shown]:
            assert (layout["moved"], layout["shift_ns"]) == (shown, 0)
        assert all(abs(here - there) < 500 for here, there in zip(own, ends(ranks, layout), strict=True))
        clock = layout["clock"]
        assert clock["aligned_by"] == "collectives" and clock["collectives"] == STEPS
        assert clock["residual_ns"] < 500
        assert clock["offset_ns"] == pytest.approx(OFFSETS[rank] - OFFSETS[shown], abs=2_000)
        assert clock["drift_ppm"] == pytest.approx((DRIFTS[rank] - DRIFTS[shown]) * 1e6, abs=1)


def test_tiles_of_a_moved_rank_are_in_its_new_time(ranks: Viewer) -> None:
    layout = ranks.get("layout", rank=1, beside=0)
    low, high = layout["start_ns"], layout["end_ns"]
    items = ranks.tile(27, low >> 37, [0], rank=1, moved=0)
    begin = (low >> 37) << 37
    unit = 1 << (27 - 8)
    for row in items.values():
        for start, *_ in row:
            assert low - unit <= begin + start * unit <= high + unit
    assert sum(count for row in items.values() for *_, count in row) > 0


def test_a_rank_alone_needs_no_clocks(ranks: Viewer) -> None:
    layout = ranks.get("layout", rank=2)
    assert (layout["shift_ns"], layout["moved"], layout["clock"]) == (0, None, None)


def test_search_counts_every_rank(ranks: Viewer) -> None:
    found = ranks.get("hits", q="ALL_reduce")
    assert found["ranks"] == [{"rank": rank, "count": STEPS} for rank in sorted(OFFSETS)]
    assert found["count"] == STEPS * len(OFFSETS)
    assert ranks.get("hits", q="nothing like that")["count"] == 0
    assert ranks.answer("hits", q="/(/").status_code == 400


def test_hits_go_round_within_a_rank_and_say_so(ranks: Viewer) -> None:
    last = ranks.get("found", q="all_reduce", at=10**15, by=-1, rank=3)
    assert (last["place"], last["around"]) == (STEPS, False)
    first = ranks.get("found", q="all_reduce", at=last["start_ns"], id=last["id"], by=1, rank=3)
    assert (first["place"], first["around"]) == (1, True)


def test_events_of_all_ranks_are_counted(ranks: Viewer) -> None:
    layout = ranks.get("layout")
    assert layout["events_of_all"] == len(OFFSETS) * layout["events"]


def test_all_ranks_as_one_file(ranks: Viewer) -> None:
    """For Perfetto, on one clock; one rank where one is asked for."""
    answer = ranks.asking.get(f"api/runs/{ranks.id}/chrome?rank=all")
    document = json.loads(gzip.decompress(answer.get_data()))
    assert "job.chrome.json.gz" in answer.headers["Content-Disposition"]
    found = ends_by_rank(document, "gloo:all_reduce")
    assert sorted(found) == sorted(OFFSETS)
    assert all(max(same) - min(same) < 0.5 for same in zip(*map(sorted, found.values()), strict=True))
    one = json.loads(gzip.decompress(ranks.asking.get(f"api/runs/{ranks.id}/chrome?rank=2").get_data()))
    assert one["stepscope"]["info"]["rank"] == 2
