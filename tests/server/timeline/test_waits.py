"""What an event waited for and what waited for it, from small recordings in which that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tests.builders.jobs.gloo_ranks import OFFSETS, STEPS
from tests.server.timeline.conftest import Viewer

Make = Callable[..., Viewer]


def named(rows: list[dict[str, Any]]) -> list[tuple[str, int, bool]]:
    return [(row["why"], row["id"], row["decides"]) for row in rows]


def test_a_kernel_waits_for_its_launch_and_for_the_stream(viewer: Make) -> None:
    """For every kernel: the launch of its link, the work before it on its stream, and the later of them decides."""
    one = viewer()
    events, links = one.trace.events, one.trace.links.filter(pl.col("why") == "launch")
    launch_of = dict(zip(links["to"], links["from"], strict=True))
    kernels = events.filter(pl.col("kind").cast(pl.String).is_in(["kernel", "copy", "memset"]))
    ids = kernels["id"].to_list()
    for at in (5, 80, 200):
        row, before = (kernels.row(place, named=True) for place in (at, at - 1))
        found = one.get("waits", id=row["id"])
        said = {each["why"]: each for each in found["before"]}
        assert said["launch"]["id"] == launch_of[row["id"]]
        assert said["stream"]["id"] == before["id"]
        ready = int(events["start_ns"][launch_of[row["id"]]]) + 10_000
        assert said["stream"]["decides"] is (before["start_ns"] + before["dur_ns"] > ready)
        assert said["launch"]["decides"] is not said["stream"]["decides"]
        assert found["before"][0]["decides"]
        after = one.get("waits", id=before["id"])["after"]
        assert ("stream", row["id"], said["stream"]["decides"]) in named(after)
        assert ids.index(row["id"]) == at


def test_a_launch_is_waited_for_by_its_kernel(viewer: Make) -> None:
    one = viewer()
    first = one.trace.links.filter(pl.col("why") == "launch").row(10, named=True)
    assert ("launch", first["to"], True) in named(one.get("waits", id=first["from"])["after"])


def test_a_host_wait_and_the_work_that_ended_it_name_one_another(viewer: Make) -> None:
    one = viewer()
    names = one.trace.events["name"].cast(pl.String)
    waits = one.trace.events.filter(names == "cudaStreamSynchronize")
    seen = 0
    for wait in waits.iter_rows(named=True):
        for each in one.get("waits", id=wait["id"])["before"]:
            work = one.trace.events.row(each["id"], named=True)
            end = wait["start_ns"] + wait["dur_ns"]
            assert each["why"] == "device"
            assert wait["start_ns"] < work["start_ns"] + work["dur_ns"] <= end + 10_000
            assert ("sync", wait["id"], True) in named(one.get("waits", id=work["id"])["after"])
            seen += 1
            around = one.trace.events["parent"][wait["id"]]
            assert each["id"] in [row["id"] for row in one.get("waits", id=around)["before"]], (
                "also of the op around it"
            )
    assert seen


def test_the_path_says_how_much_of_a_step_an_event_decides(viewer: Make) -> None:
    one = viewer()
    spans = [one.get("event", id=number, layer="path") for number in range(20)]
    events = {span["named_by"]["id"] for span in spans if "named_by" in span}
    on_path = [one.get("waits", id=number)["path"] for number in events]
    assert on_path
    for each in on_path:
        span = one.get("event", id=each["id"], layer="path")
        assert 0 < span["dur_ns"] <= each["ns"]
        assert each["before"] is None or each["before"]["id"] == each["id"] - 1


def test_odd_events_have_no_waits_and_no_error(viewer: Make) -> None:
    for name in ("jax.xplane.pb.gz", "events.out.tfevents.1794707819.vm", "graph.pt.trace.json.gz"):
        one = viewer(name)
        for number in range(0, len(one.trace.events), max(1, len(one.trace.events) // 25)):
            assert set(one.get("waits", id=number)) == {"before", "after", "path"}
    assert viewer().answer("waits", id=10**8).status_code == 400


@pytest.mark.parametrize("shown", [0, 2])
def test_a_collective_is_found_on_every_rank(ranks: Viewer, shown: int) -> None:
    layouts = {rank: ranks.get("layout", rank=rank, beside=shown) for rank in sorted(OFFSETS)}
    hits = ranks.get("hitlist", q="gloo:all_reduce", rank=shown)["hits"]
    assert len(hits) == STEPS
    for place in (0, STEPS - 1):
        asked = {
            "rank": shown,
            "beside": shown,
            "id": hits[place]["id"],
            "ranks": ",".join(map(str, OFFSETS)),
        }
        calls = ranks.get("meeting", **asked)["calls"]
        assert sorted(call["rank"] for call in calls) == sorted(OFFSETS)
        for call in calls:
            moved = layouts[call["rank"]]["moved"]
            of = {"rank": call["rank"]} | ({} if moved is None else {"moved": moved})
            theirs = ranks.get("hitlist", q="gloo:all_reduce", **of)["hits"]
            assert (call["id"], call["after_ns"]) == (theirs[place]["id"], theirs[place]["after_ns"])
        ends = [call["start_ns"] + call["dur_ns"] for call in calls]
        assert max(ends) - min(ends) < 500, "all leave together"


def test_what_is_no_collective_meets_nobody(ranks: Viewer) -> None:
    other = ranks.trace.events.filter(pl.col("role").is_null())["id"][0]
    assert ranks.get("meeting", rank=0, beside=0, id=other, ranks="0,1")["calls"] == []
    assert ranks.get("meeting", rank=0, beside=0, id=0, ranks="0,77")["calls"] == []
