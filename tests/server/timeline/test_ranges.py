"""A range of the viewer: its pivot, its export, and the SQL that gives the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from tests.server.timeline.conftest import Viewer

Make = Callable[..., Viewer]


def middle(one: Viewer) -> dict[str, Any]:
    """The middle third of a recording on every second track."""
    layout = one.get("layout")
    long = layout["end_ns"] - layout["start_ns"]
    tracks = sorted(track["id"] for group in layout["groups"] for track in group["tracks"])
    start = layout["start_ns"] + long // 3
    return {"start": start, "end": start + long // 3, "tracks": ",".join(map(str, tracks[::2]))}


def inside(one: Viewer, asked: dict[str, Any]) -> pl.DataFrame:
    """What a plain filter gives."""
    tracks = [int(track) for track in asked["tracks"].split(",")]
    ends = pl.col("start_ns") + pl.col("dur_ns")
    return one.trace.events.filter(
        pl.col("track").is_in(tracks),
        pl.col("start_ns") < asked["end"],
        (ends > asked["start"]) | (pl.col("start_ns") >= asked["start"]),
    )


@pytest.mark.parametrize("name", ["gpt.pt.trace.json.gz", "jax.xplane.pb.gz"])
def test_pivots_have_all_events_and_the_same_self_time(name: str, viewer: Make) -> None:
    one = viewer(name)
    asked = middle(one)
    whole = one.get("range", **asked)
    assert whole["events"] == len(inside(one, asked)) > 0
    own = sum(row["self_ns"] for row in whole["names"])
    for by in ("name", "category", "module"):
        rows = one.get("pivot", by=by, **asked)["names"]
        assert sum(row["count"] for row in rows) == whole["events"]
        assert sum(row["self_ns"] for row in rows) == own
        if one.trace.info.format == "kineto":  # elsewhere slices overlap, and their time is covered once
            assert all(row["self_ns"] <= row["total_ns"] for row in rows)


def test_categories_and_modules_are_those_of_the_tables(viewer: Make) -> None:
    one = viewer()
    asked = middle(one)
    asked["tracks"] = ",".join(map(str, one.trace.events["track"].unique()))
    counted = inside(one, asked)["source_category"].cast(pl.String).drop_nulls().value_counts()
    rows = {row["name"]: row["count"] for row in one.get("pivot", by="category", **asked)["names"]}
    assert dict(counted.iter_rows()).items() <= rows.items()
    modules = {row["name"]: row for row in one.get("pivot", by="module", **asked)["names"]}
    assert "Sequential_0/Block_0/MultiheadAttention_0" in modules
    assert modules["Sequential_0/Block_0/MultiheadAttention_0"]["total_ns"] > 0


def test_a_module_has_the_kernels_that_its_ops_launched(viewer: Make) -> None:
    one = viewer()
    layout = one.get("layout")
    streams = [track["id"] for group in layout["groups"] if group["device"] is not None for track in group["tracks"] if track["what"] == "device"]  # fmt: skip
    asked = {"start": layout["start_ns"], "end": layout["end_ns"], "tracks": ",".join(map(str, streams))}
    modules = {row["name"]: row["count"] for row in one.get("pivot", by="module", **asked)["names"]}
    assert modules.get("Sequential_0/Block_0/MultiheadAttention_0", 0) > 5


def test_steps_in_the_range_are_counted_in_parts(viewer: Make) -> None:
    one = viewer()
    asked = middle(one)
    steps = one.get("range", **asked)["steps"]
    layout = one.get("layout")
    whole = one.get("range", start=layout["start_ns"], end=layout["end_ns"], tracks="0")["steps"]
    assert 0 < steps < whole
    assert whole == pytest.approx(round(whole))


@pytest.mark.parametrize("name", ["gpt.pt.trace.json.gz", "jax.xplane.pb.gz", "graph.pt.trace.json.gz"])
def test_the_export_of_a_range_opens_again(name: str, viewer: Make, tmp_path: Path) -> None:
    one = viewer(name)
    asked = middle(one)
    answer = one.answer("chrome", **asked)
    assert "range.chrome.json.gz" in answer.headers["Content-Disposition"]
    file = tmp_path / "range.json.gz"
    file.write_bytes(answer.get_data())
    again = stepscope.load(str(file)).traces[0]
    wanted = inside(one, asked)
    columns = [
        "track",
        "name",
        "kind",
        "start_ns",
        "dur_ns",
        "depth",
    ]  # steps are found anew, by the marks of the main thread
    assert again.events.select(columns).rows() == wanted.select(columns).rows()
    ids = set(wanted["id"])
    links = one.trace.links.filter(pl.col("from").is_in(ids) & pl.col("to").is_in(ids))
    assert len(again.links) == len(links)
    assert len(again.kernels) == one.trace.kernels["event"].is_in(ids).sum()


def test_an_empty_range_is_exported_too(viewer: Make, tmp_path: Path) -> None:
    one = viewer()
    file = tmp_path / "range.json.gz"
    file.write_bytes(one.answer("chrome", start=-50, end=-40, tracks="0").get_data())
    assert len(stepscope.load(str(file)).traces[0].events) == 0


@pytest.mark.parametrize("every", [True, False])
def test_sql_gives_exactly_the_rows_of_the_range(every: bool, viewer: Make) -> None:
    one = viewer()
    asked = middle(one)
    asked["end"] = asked["start"] + (asked["end"] - asked["start"]) // 40
    if every:
        asked["tracks"] = ",".join(map(str, one.trace.events["track"].unique()))
    where = one.get("where", **asked)["where"]
    assert ("track IN" in where) is not every
    answer = one.asking.post(
        f"api/runs/{one.id}/sql", {"query": f"SELECT id FROM events WHERE {where}"}
    ).get_json()
    wanted = inside(one, asked)["id"].to_list()
    assert sorted(row[0] for row in answer["rows"]) == wanted
    assert not answer["truncated"] and len(wanted) > 3
