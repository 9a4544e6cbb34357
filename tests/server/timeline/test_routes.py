"""Layout, details, search, ranges, counters and layers, checked against the tables of the same profile."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.server.app import make_app
from stepscope.server.runs.watch import Place
from tests.builders.documents import span
from tests.builders.files import write_kineto
from tests.server.conftest import Asking
from tests.server.timeline.conftest import Viewer

Make = Callable[..., Viewer]


def test_the_layout_lists_every_track_with_events(viewer: Make) -> None:
    for name in ("gpt.pt.trace.json.gz", "jax.xplane.pb.gz", "events.out.tfevents.1794707819.vm"):
        one = viewer(name)
        layout = one.get("layout")
        tracks = [track for group in layout["groups"] for track in group["tracks"]]
        assert sorted(track["id"] for track in tracks) == sorted(one.trace.events["track"].unique())
        assert sum(track["events"] for track in tracks) == len(one.trace.events) == layout["events"]
        rows = sorted(row for track in tracks for row in range(track["row"], track["row"] + track["rows"]))
        assert rows == list(range(layout["rows"]))
        assert layout["start_ns"] < layout["end_ns"]
        assert all(group["title"] for group in layout["groups"])


def test_devices_come_before_the_host_and_the_main_thread_before_others(viewer: Make) -> None:
    groups = viewer().get("layout")["groups"]
    assert [group["what"] for group in groups][:2] == ["device", "host"]
    assert groups[0]["title"].startswith("GPU 0")
    assert groups[1]["tracks"][0]["title"].startswith("main thread")


def test_times_since_1970_are_counted_from_a_moment_that_a_browser_holds_exactly(tmp_path: Path) -> None:
    """Its numbers hold every 256th ns of them: one of these is the begin, and all others are counted from there."""
    begin = 1_694_128_201_426_529  # µs
    write_kineto(
        tmp_path / "job.pt.trace.json", *(span("cpu_op", f"op {at}", begin + 3 * at, 2) for at in range(3))
    )
    app = make_app([Place(str(tmp_path))])
    asking = Asking(app)
    about = f"api/runs/{asking.id_of('job.pt.trace.json')}/timeline"
    start = asking.get(f"{about}/layout").get_json()["start_ns"]
    assert int(float(start)) == start <= 1_000 * begin < start + 1024
    told = [asking.get(f"{about}/event?id={number}").get_json()["after_ns"] for number in range(3)]
    assert told == [1_000 * (begin + 3 * at) - start for at in range(3)]
    app.close()


def a_kernel(one: Viewer) -> dict[str, Any]:
    """A kernel with a launch."""
    launched = one.trace.links.filter(pl.col("why") == "launch")["to"]
    kernels = one.trace.events.filter((pl.col("kind") == "kernel") & pl.col("id").is_in(launched.implode()))
    return kernels.row(len(kernels) // 2, named=True)


def test_an_event_with_its_stack_links_op_and_step(viewer: Make) -> None:
    one = viewer()
    kernel = a_kernel(one)
    told = one.get("event", id=kernel["id"])
    assert [told[key] for key in ("name", "start_ns", "dur_ns", "track", "step")] == [
        kernel[key] for key in ("name", "start_ns", "dur_ns", "track", "step")
    ]
    assert told["facts"]["kernels"]["grid"]
    launch = next(link for link in told["links"] if link["why"] == "launch")
    assert launch["direction"] == "from"
    back = one.get("event", id=launch["id"])
    assert kernel["id"] in [link["id"] for link in back["links"] if link["direction"] == "to"]
    assert back["row"] == launch["row"]
    assert told["op"]["id"] == one.trace.kernels.filter(pl.col("event") == kernel["id"])["op"][0]
    ids = [each["id"] for each in back["stack"]]
    parents = [one.trace.events["parent"][number] for number in ids]
    assert parents == [None, *ids[:-1]]
    assert ids[-1] == one.trace.events["parent"][launch["id"]]


def test_self_time_is_what_children_leave(viewer: Make) -> None:
    one = viewer()
    parents = one.trace.events["parent"].drop_nulls().value_counts(sort=True)["parent"].head(20)
    for number in parents:
        inside = one.trace.events.filter(pl.col("parent") == number)
        told = one.get("event", id=number)
        assert told["children"] == len(inside)
        assert told["self_ns"] == max(0, told["dur_ns"] - inside["dur_ns"].sum())


def test_arguments_are_those_of_the_file(viewer: Make) -> None:
    one = viewer()
    kernel = a_kernel(one)
    assert one.get("arguments", id=kernel["id"])["arguments"] == one.trace.arguments(kernel["id"])


def test_the_row_of_an_event_is_the_one_that_shows_it(viewer: Make) -> None:
    one = viewer()
    blocks = list(range(16))
    for number in range(0, len(one.trace.events), 997):
        told = one.get("event", id=number)
        tile = one.tile(0, told["start_ns"] >> 10, blocks)
        assert number in [item[2] for item in tile[told["row"]]] or not told["dur_ns"]


def test_neighbours_follow_one_another(viewer: Make) -> None:
    one = viewer()
    number, seen = a_kernel(one)["id"], []
    for _ in range(5):
        seen.append(number)
        number = one.get("neighbour", id=number, by=1)["id"]
    starts = [one.trace.events["start_ns"][each] for each in seen]
    assert starts == sorted(starts)
    assert len({one.trace.events["track"][each] for each in seen}) == 1
    assert one.get("neighbour", id=seen[1], by=-1)["id"] == seen[0]


def test_search_finds_all_of_them_also_off_screen(viewer: Make) -> None:
    one = viewer()
    names = one.trace.events["name"].cast(pl.String)
    wanted = one.trace.events.filter(names.str.to_lowercase().str.contains("aten::add"))
    found = one.get("search", q="aten::ADD")
    assert found["count"] == len(wanted) == sum(found["histogram"])
    assert found["count"] > 10
    assert one.get("search", q="/^aten::add$/")["count"] == int((names == "aten::add").sum())
    assert one.get("search", q="no such name")["count"] == 0
    lit = one.get("names", key=one.key, page=0)
    assert {lit[number] for number in found["names"]} == set(wanted["name"].cast(pl.String))


def test_hits_are_visited_in_order_round_and_back(viewer: Make) -> None:
    one = viewer()
    names = one.trace.events["name"].cast(pl.String)
    wanted = one.trace.events.filter(names.str.contains("aten::mm", literal=True)).sort("start_ns", "id")
    ids = wanted["id"].to_list()
    hit = one.get("found", q="aten::mm", at=0, by=1)
    seen = [hit]
    for _ in range(len(ids)):
        hit = one.get("found", q="aten::mm", at=hit["start_ns"], id=hit["id"], by=1)
        seen.append(hit)
    assert [each["id"] for each in seen] == [*ids, ids[0]]
    assert [each["place"] for each in seen[:-1]] == list(range(1, len(ids) + 1))
    last = one.get("found", q="aten::mm", at=seen[0]["start_ns"], id=seen[0]["id"], by=-1)
    assert last["id"] == ids[-1]
    assert one.answer("found", q="no such name", at=0, by=1).status_code == 404


def test_a_range_adds_up(viewer: Make) -> None:
    one = viewer()
    layout = one.get("layout")
    start, end = layout["start_ns"], layout["end_ns"]
    middle = (start + end) // 2
    tracks = [track["id"] for group in layout["groups"] for track in group["tracks"]]
    halves = [one.get("range", start=a, end=b, tracks=",".join(map(str, tracks))) for a, b in ((start, middle), (middle, end))]  # fmt: skip
    totals: dict[str, int] = {}
    for half in halves:
        for row in half["names"]:
            totals[row["name"]] = totals.get(row["name"], 0) + row["total_ns"]
    shown = one.trace.events.filter(
        (pl.col("start_ns") < end) & (pl.col("start_ns") + pl.col("dur_ns") > start)
    )
    wanted = dict(shown.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum()).iter_rows())
    assert halves[0]["names_total"] <= 500
    for name, ns in wanted.items():
        if "PyTorch Profiler" not in name:  # reaches beyond what ran
            assert totals.get(name, 0) == ns, name
    assert all(0 <= row["busy_share"] <= 1 for half in halves for row in half["tracks"])
    assert all(0 < device["busy_share"] < 1 for half in halves for device in half["devices"])


def test_the_devices_busy_share_is_that_of_the_report(viewer: Make) -> None:
    one = viewer()
    steps = one.asking.get(f"api/runs/{one.id}/report").get_json()
    rows = steps["steps"]["rows"]
    start = min(row["start_ns"] for row in rows)
    end = max(row["start_ns"] + row["duration_ns"] for row in rows)
    found = one.get("range", start=start, end=end, tracks="")
    assert found["devices"][0]["busy_share"] == pytest.approx(steps["device"]["busy_share"], abs=1e-6)
    parts = {row["part"]: row["ns"] for row in one.get("parts", start=start, end=end)["parts"]}
    wanted = {row["part"]: row["ns"] for row in steps["breakdown"] if row["ns"]}
    assert sum(parts.values()) == end - start
    assert parts == pytest.approx(wanted, rel=0.35)  # the report may leave steps out


def columns(data: bytes) -> tuple[array[int], array[float], array[float], array[float]]:
    """A tile of a counter."""
    size = len(data) // 4
    values = [array("f", data[size * at : size * (at + 1)]) for at in (1, 2, 3)]
    return array("i", data[:size]), values[0], values[1], values[2]


def test_counters_of_devices_memory_and_queue(viewer: Make) -> None:
    one = viewer()
    counters = {each["id"]: each for each in one.get("counters")["counters"]}
    assert {"busy 0", "queue 0"} <= counters.keys()
    assert any(each["unit"] == "bytes" for each in counters.values())
    level = 34
    index = one.get("layout")["start_ns"] >> (level + 10)
    for name, counter in counters.items():
        places, lows, highs, lasts = columns(one.bytes("counter", counter=name, level=level, index=index))
        assert len(places) >= 1, name
        assert all(low <= last <= high for low, high, last in zip(lows, highs, lasts, strict=True))
        assert max(highs) > 0
        if counter["unit"] == "share":
            assert max(highs) <= 1
        if name.startswith("memory gpu"):
            assert max(highs) == pytest.approx(one.trace.memory.filter(pl.col("device_kind") == "gpu")["total_allocated"].max())  # fmt: skip
        if name.startswith("queue"):
            assert lasts[-1] == 0
    assert one.answer("counter", key=one.key, counter="nothing", level=3, index=0).status_code == 404


def test_layers_have_the_steps_and_the_account(viewer: Make) -> None:
    one = viewer()
    report = one.asking.get(f"api/runs/{one.id}/report").get_json()
    rows = one.get("layer", layer="steps")["rows"]
    assert [row["title"] for row in rows] == ["Steps", "Steps on GPU 0"]
    level = 34
    index = one.get("layout")["start_ns"] >> (level + 10)
    steps = one.tile(level, index, [0], layer="steps")
    assert sum(item[4] for item in steps[1]) == len(report["steps"]["rows"])
    first = one.get("event", layer="steps", id=steps[1][0][2])
    assert first["name"].startswith("step ")
    account = one.get("layer", layer="account")["rows"]
    assert [row["title"] for row in account] == ["Account of GPU 0"]
    span = one.get("event", layer="account", id=3)
    assert span["part"]
    assert span["named_by"]["name"]
    assert one.get("neighbour", layer="account", id=3, by=1)["id"] is not None
    assert one.answer("event", layer="account", id=10**9).status_code == 400


def test_the_critical_path_can_be_followed_from_any_moment_of_a_step(viewer: Make) -> None:
    one = viewer()
    assert [row["title"] for row in one.get("layer", layer="path")["rows"]] == ["Critical path"]
    step = one.asking.get(f"api/runs/{one.id}/report").get_json()["steps"]["rows"][0]
    at, end, steps = step["start_ns"], step["start_ns"] + step["duration_ns"], 0
    number = one.get("path", at=at)["id"]
    while at < end and steps < 20:
        span = one.get("event", layer="path", id=number)
        assert (span["start_ns"], span["step"]) == (at, step["step"])
        assert span["name"]
        assert span["meaning"]
        at, steps, number = (
            at + span["dur_ns"],
            steps + 1,
            one.get("neighbour", layer="path", id=number, by=1)["id"],
        )
    assert one.get("path", at=2**62)["id"] is None


@pytest.mark.parametrize(
    ("route", "query", "status"),
    [
        ("event", {"id": 10**9}, 400),
        ("event", {"id": -1}, 400),
        ("event", {}, 400),
        ("arguments", {"id": 2**40}, 400),
        ("neighbour", {"id": 0, "by": 7}, 400),
        ("search", {"q": "  "}, 400),
        ("search", {"q": "x" * 301}, 400),
        ("search", {"q": "/(/"}, 400),
        ("found", {"q": "aten", "at": "soon"}, 400),
        ("range", {"start": 5, "end": 5}, 400),
        ("range", {"start": 0, "end": 2**63}, 400),
        ("range", {"start": 0, "end": 1, "tracks": ",".join(["1"] * 2001)}, 400),
        ("layer", {"layer": "secrets"}, 400),
        ("path", {"at": "soon"}, 400),
        ("layout", {"rank": 3}, 404),
        ("names", {"key": "stale"}, 409),
    ],
)
def test_absurd_questions_are_refused(viewer: Make, route: str, query: dict[str, Any], status: int) -> None:
    answer = viewer().answer(route, **query)
    assert answer.status_code == status
    assert answer.get_json()["error"]["what"]


def test_a_recording_without_steps_or_devices_still_has_a_layout(viewer: Make) -> None:
    one = viewer("events.out.tfevents.1794707819.vm")
    assert one.get("layer", layer="phases")["rows"] == []
    assert len(one.get("layer", layer="path")["rows"]) <= 1
    assert one.get("counters")["counters"] is not None
    assert one.get("range", start=0, end=10**12, tracks="0")["devices"] == []
