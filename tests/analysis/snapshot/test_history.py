"""A snapshot at any moment: totals by kind, segments with every byte in its place, and stacks as a tree."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analysis.snapshot.course import take_course
from stepscope.analysis.snapshot.flame import NO_STACK, flame_of_bytes
from stepscope.analysis.snapshot.history import History, follow
from stepscope.analysis.snapshot.moment import FREE, GONE, look_at, merge_small
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.builders.snapshots import MIB, Job, making, script, training


def opened(value: Any, folder: Path) -> tuple[Trace, History]:
    """The trace of this snapshot, and the history of its device."""
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(value))
    trace = read(Source(str(path)))
    return trace, follow(trace, 0)


def late() -> dict[str, Any]:
    """History that begins in the middle: what it releases first was there before."""
    job = Job()
    first, second = job.take(MIB, script(3)), job.take(2 * MIB, script(4))
    job.events.clear()
    job.free(first)
    job.take(4 * MIB, making(script(5)))
    job.split(second, 6 * MIB)
    return job.snapshot()


@pytest.mark.parametrize("value", [training(4).snapshot(), training(4, leak=True).snapshot(), late()])
def test_kinds_add_up_to_the_total_at_every_moment(tmp_path: Path, value: dict[str, Any]) -> None:
    _, history = opened(value, tmp_path)
    for place, total in enumerate(history.rows["total_allocated"]):
        assert history.live_at(place)["bytes"].sum() == total
    times = history.rows["time_ns"]
    course = take_course(history, int(times[0]), int(times[-1]), 10_000)
    sums = [sum(each) for each in zip(*course.kinds.values(), strict=True)]
    assert sums == history.rows["total_allocated"].to_list()


def test_few_bins_keep_the_highest_moment(tmp_path: Path) -> None:
    _, history = opened(training(8).snapshot(), tmp_path)
    course = take_course(history, 0, int(history.rows["time_ns"][-1]), 5)
    sums = [sum(each) for each in zip(*course.kinds.values(), strict=True)]
    assert len(sums) <= 10
    assert max(sums) == history.rows["total_allocated"].max()


def check_cover(moment: Any) -> None:
    """Pieces fill their segments without gaps or overlaps, except in segments that were given back."""
    for row in moment.segments.filter(pl.col("segment_kind") != GONE).iter_rows(named=True):
        mine = moment.pieces.filter(pl.col("segment") == row["segment"])
        ends = (mine["address"] + mine["bytes"].cast(pl.UInt64)).to_list()
        assert mine["address"].to_list() == [row["segment"], *ends[:-1]]
        assert ends[-1] == row["segment"] + row["bytes"]


def test_the_end_is_as_the_snapshot_has_it(tmp_path: Path) -> None:
    _, history = opened(late(), tmp_path)
    moment = look_at(history, None)
    check_cover(moment)
    kinds = dict(moment.pieces.group_by("kind").agg(pl.col("bytes").sum()).iter_rows())
    assert kinds == {"parameter": 4 * MIB, "unknown": 2 * MIB, FREE: 4 * MIB}
    line = moment.pieces.filter(pl.col("kind") == "parameter")["site_line"].to_list()
    assert line == [5]


def test_an_earlier_moment(tmp_path: Path) -> None:
    _, history = opened(training(3).snapshot(), tmp_path)
    place = int(history.rows["total_allocated"].arg_max() or 0)
    moment = look_at(history, place)
    check_cover(moment)
    used = moment.pieces.filter(pl.col("kind") != FREE)
    assert used["bytes"].sum() == history.rows["total_allocated"][place]
    assert sorted(used["address"]) == sorted(history.live_at(place)["address"])
    assert GONE in moment.segments["segment_kind"].to_list()


def test_small_pieces_are_merged_and_nothing_is_lost(tmp_path: Path) -> None:
    job = Job()
    blocks: list[dict[str, Any]] = [
        {"size": 512 * (1 + place % 5), "requested_size": 512, "state": state, "frames": script(place % 3)}
        for place, state in enumerate(["active_allocated", "active_allocated", "inactive"] * 200)
    ]
    total = sum(each["size"] for each in blocks)
    segment = {"device": 0, "address": 1 << 40, "total_size": total, "stream": 0, "allocated_size": 0, "segment_type": "small", "blocks": blocks}  # fmt: skip
    _, history = opened([segment, *job.snapshot()["segments"]], tmp_path)
    pieces = look_at(history, None).pieces
    chosen = int(pieces["address"][0])
    small = merge_small(pieces, 20, chosen)
    assert len(small) <= 2 * 21 + 1
    assert small["bytes"].sum() == total
    assert small["count"].sum() == 600
    assert small.filter(pl.col("address") == chosen)["count"].to_list() == [1]


def test_flame_graph_of_bytes(tmp_path: Path) -> None:
    trace, history = opened(training(3, leak=True).snapshot(), tmp_path)
    live = history.live_at(history.last)
    flame = flame_of_bytes(trace, live)
    rows = flame.nodes.with_columns(word=pl.Series([flame.names[each] for each in flame.nodes["name"]]))
    tops = rows.filter(pl.col("parent") == -1)
    assert tops["total"].sum() == live["bytes"].sum()
    kept = tops.filter(pl.col("word") == "/home/me/train.py(10): <module>").row(0, named=True)
    assert kept["total"] == 3 * (4 * 16 * MIB + 4096)
    assert kept["kind"] == "activation"
    leaf = rows.filter(pl.col("own") == 2 * 3 * 16 * MIB).row(0, named=True)
    frames = trace.frames.filter(pl.col("stack") == leaf["like"]).sort("depth")
    assert (22, "forward") in frames.select("line", pl.col("function").cast(pl.String)).rows()


def test_blocks_without_a_stack_are_one_box(tmp_path: Path) -> None:
    job = Job()
    job.take(MIB, [])
    trace, history = opened(job.snapshot(), tmp_path)
    flame = flame_of_bytes(trace, history.live_at(history.last))
    assert flame.names == [NO_STACK]
    assert flame.nodes["total"].to_list() == [MIB]
