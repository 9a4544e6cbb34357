"""Chrome trace JSON from anyone: phases, halves, lanes, counters, arrows and names."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from stepscope.trace.trace import Trace
from tests.builders.documents import chrome, codes, event, links, named
from tests.formats.ways import Way


def half(phase: str, name: str | None, ts: float, tid: int = 1, **more: Any) -> dict[str, Any]:
    """An event without a duration of its own."""
    return {"ph": phase, "pid": 1, "tid": tid, "ts": ts} | ({"name": name} if name else {}) | more


def spans(trace: Trace) -> list[tuple[str, float, float, int]]:
    """Name, start and duration in µs, depth; in order of time."""
    rows = trace.events.sort("start_ns", "depth").select("name", "start_ns", "dur_ns", "depth").rows()
    return [(name, start / 1000, dur / 1000, depth) for name, start, dur, depth in rows]


@pytest.mark.parametrize("around", ["object", "array", "array without an end"])
def test_object_or_bare_array(way: Way, around: str) -> None:
    events = [event("x", "a", 0, 10), event("x", "b", 2, 3)]
    bare = json.dumps(events).encode()
    data = {"object": chrome(*events), "array": bare, "array without an end": bare[:-1] + b",\n"}[around]
    trace = way(data)
    assert spans(trace) == [("a", 0, 10, 0), ("b", 2, 3, 1)]
    assert trace.info.format == "chrome"
    assert codes(trace) == ({"truncated": 1} if "without" in around else {})


# --- spans in two halves ------------------------------------------------------------------------------------------


def test_halves_nest(way: Way) -> None:
    trace = way(
        chrome(
            half("B", "a", 0),
            half("B", "b", 1),
            half("E", "b", 3),
            half("B", "b", 4),
            half("E", None, 6),
            half("E", "a", 9),
        )
    )
    assert spans(trace) == [("a", 0, 9, 0), ("b", 1, 2, 1), ("b", 4, 2, 1)]
    assert codes(trace) == {}


def test_halves_of_threads_do_not_mix(way: Way) -> None:
    trace = way(
        chrome(
            half("B", "a", 0, 1),
            half("B", "b", 1, 2),
            half("E", "a", 5, 1),
            half("E", "b", 3, 2),
            half("B", "c", 6, 1),
        )
    )
    assert sorted(spans(trace)) == [("a", 0, 5, 0), ("b", 1, 2, 0), ("c", 6, 0, 0)]


def test_arguments_of_both_halves_are_kept(way: Way) -> None:
    trace = way(chrome(half("B", "a", 0, args={"x": 1}), half("E", "a", 5, args={"y": [2], "Bytes": 9})))
    assert trace.arguments(0) == {"x": 1, "y": [2], "Bytes": 9, "memory_bytes": 9}


def test_halves_without_their_other_half(way: Way) -> None:
    trace = way(
        chrome(
            half("E", "lost", 1),
            half("B", "open", 2),
            event(None, "long", 3, 97, tid=2),
            half("E", "lost too", 3, 3),
        )
    )
    assert sorted(spans(trace)) == [("long", 3, 97, 0), ("open", 2, 98, 0)]
    assert codes(trace) == {"unfinished-events": 1, "unmatched-ends": 2}
    assert trace.problems["detail"].to_list() == [
        "1 events have a start and no end; they last to the end of the trace here.",
        "2 events have an end and no start; they were left out.",
    ]


def test_halves_and_whole_spans_nest_in_each_other(way: Way) -> None:
    trace = way(chrome(half("B", "a", 0), event(None, "x", 2, 4), half("E", "a", 10)))
    assert spans(trace) == [("a", 0, 10, 0), ("x", 2, 4, 1)]


# --- moments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["i", "I", "R", "N", "O", "D", "P"])
def test_moments(way: Way, phase: str) -> None:
    trace = way(chrome(half(phase, "now", 5, s="g", args={"k": 1})))
    assert named(trace, "now") | {"kind": "instant", "dur_ns": 0} == named(trace, "now")
    assert trace.arguments(0)["k"] == 1
    assert codes(trace) == {}


def test_a_phase_that_nobody_knows_is_kept_and_counted(way: Way) -> None:
    trace = way(chrome(half("?", "odd", 5), event(None, "a", 0, 1)))
    assert named(trace, "odd")["kind"] == "span"
    assert codes(trace) == {"unknown-phase": 1}


# --- asynchronous spans -------------------------------------------------------------------------------------------


def lanes(trace: Trace) -> list[tuple[str, str, float, float]]:
    """The lane's name, then name, start and duration of each event that is in one."""
    found = trace.events.join(
        trace.tracks.filter(pl.col("what") == "derived"), left_on="track", right_on="id"
    )
    rows = found.sort("thread", "start_ns").select("thread", "name", "start_ns", "dur_ns").rows()
    return [(thread, name, start / 1000, dur / 1000) for thread, name, start, dur in rows]


@pytest.mark.parametrize("phases", ["bne", "STF"])
def test_asynchronous_spans_overlap_in_lanes(way: Way, phases: str) -> None:
    trace = way(
        chrome(
            half(phases[0], "a", 0, id=1, cat="net"),
            half(phases[0], "b", 2, id=2, cat="net"),
            half(phases[1], "a", 4, id=1, cat="net"),
            half(phases[2], "a", 5, id=1, cat="net"),
            half(phases[0], "c", 6, id=1, cat="net"),
            half(phases[2], "b", 7, id=2, cat="net"),
            half(phases[2], "c", 8, id=1, cat="net"),
            event(None, "on the thread", 0, 10),
        )
    )
    assert [row for row in lanes(trace) if row[3]] == [
        ("async net 0", "a", 0, 5),
        ("async net 0", "c", 6, 2),
        ("async net 1", "b", 2, 5),
    ]
    assert ("a", 4, 0) in [row[1:] for row in lanes(trace)]
    assert named(trace, "on the thread")["parent"] is None
    assert set(trace.events["depth"]) == {0}
    assert codes(trace) == {}


@pytest.mark.parametrize("other", [{"id": "0x7f"}, {"id2": {"local": "0x7f"}}])
def test_ids_may_be_text(way: Way, other: dict[str, Any]) -> None:
    first: dict[str, Any] = {"id": "0x1"}
    second = other
    trace = way(
        chrome(
            half("b", "a", 0, **first),
            half("b", "b", 1, **second),
            half("e", "a", 5, **first),
            half("e", "b", 9, **second),
        )
    )
    assert lanes(trace) == [("async 0", "a", 0, 5), ("async 1", "b", 1, 8)]


def test_asynchronous_ids_belong_to_their_category(way: Way) -> None:
    trace = way(
        chrome(
            half("b", "a", 0, id=1, cat="x"),
            half("b", "a", 1, id=1, cat="y"),
            half("e", "a", 5, id=1, cat="y"),
            half("e", "a", 9, id=1, cat="x"),
        )
    )
    assert lanes(trace) == [("async x 0", "a", 0, 9), ("async y 0", "a", 1, 4)]


def test_asynchronous_spans_nest_within_their_id(way: Way) -> None:
    trace = way(
        chrome(
            half("b", "outer", 0, id=1, cat="x"),
            half("b", "inner", 1, id=1, cat="x"),
            half("e", "inner", 4, id=1, cat="x"),
            half("e", "outer", 9, id=1, cat="x"),
        )
    )
    assert lanes(trace) == [("async x 0", "outer", 0, 9), ("async x 1", "inner", 1, 3)]


# --- counters -----------------------------------------------------------------------------------------------------


def test_each_series_of_a_counter_is_a_track(way: Way) -> None:
    trace = way(
        chrome(
            half("C", "mem", 1, args={"used": 5, "free": "7.5"}),
            half("C", "mem", 2, args={"used": 6, "free": None, "note": "text"}),
            half("C", "empty", 3),
        )
    )
    thread = dict(trace.tracks.select("id", "thread").iter_rows())
    assert [(thread[track], time, value) for track, time, value in trace.counters.iter_rows()] == [
        ("mem used", 1_000, 5.0),
        ("mem free", 1_000, 7.5),
        ("mem used", 2_000, 6.0),
    ]
    assert trace.events["kind"].to_list() == ["counter"] * 3
    assert trace.tracks.filter(pl.col("id").is_in(trace.counters["track"].implode()))[
        "what"
    ].unique().to_list() == ["counter"]


# --- arrows -------------------------------------------------------------------------------------------------------


def test_arrows_lead_from_point_to_point(way: Way) -> None:
    trace = way(
        chrome(
            event(None, "a", 0, 5),
            event(None, "b", 10, 5, tid=2),
            event(None, "c", 20, 5, tid=3),
            half("s", "flow", 1, 1, id=9, cat="x"),
            half("t", "flow", 11, 2, id=9, cat="x"),
            half("f", "flow", 21, 3, id=9, cat="x", bp="e"),
        )
    )
    assert links(trace) == [("a", "b", "flow"), ("b", "c", "flow")]


@pytest.mark.parametrize(("bind", "end"), [({"bp": "e"}, "around"), ({}, "next")])
def test_where_an_arrow_ends(way: Way, bind: dict[str, Any], end: str) -> None:
    trace = way(
        chrome(
            event(None, "from", 0, 1),
            event(None, "around", 2, 10, tid=2),
            event(None, "next", 5, 2, tid=2),
            half("s", "x", 0.5, 1, id=1),
            half("f", "x", 4, 2, id=1, **bind),
        )
    )
    assert links(trace) == [("from", end, "flow")]


def test_ids_are_used_again(way: Way) -> None:
    on = [event(None, name, 10 * i, 5) for i, name in enumerate("abcd")]
    points = [half(phase, "x", 10 * i + 1, id=1, bp="e") for i, phase in enumerate("sfsf")]
    assert links(way(chrome(*on, *points))) == [("a", "b", "flow"), ("c", "d", "flow")]


def test_loose_arrows_are_counted(way: Way) -> None:
    points = [half("s", "x", 1, id=1), half("f", "x", 1, id=2, bp="e"), half("s", "x", 1)]
    missed = [half("s", "x", 2, id=3), half("f", "x", 90, id=3, bp="e")]
    trace = way(chrome(event(None, "a", 0, 5), *points, *missed))
    assert links(trace) == []
    assert codes(trace) == {"loose-flows": 4}


# --- names --------------------------------------------------------------------------------------------------------


def test_names_of_processes_and_threads(way: Way) -> None:
    def meta(name: str, tid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": 1, "tid": tid, "args": args}

    trace = way(
        chrome(
            event(None, "a", 0, 1),
            event(None, "b", 0, 1, pid="text", tid=None),
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
            meta("thread_name", 1) | {"args": {"name": "main"}},
            meta("thread_sort_index", 1, sort_index=3),
            meta("process_name", 1) | {"args": None},
        )
    )
    assert trace.tracks.select("process", "thread", "pid", "tid").rows() == [
        ("python", "main", "1", "1"),
        (None, None, "text", None),
    ]


def test_numbers_as_text_and_text_as_numbers(way: Way) -> None:
    trace = way(chrome({"ph": "X", "name": "a", "ts": "5", "dur": "1.5", "pid": "12", "tid": -3}))
    assert spans(trace) == [("a", 5, 1.5, 0)]
    assert trace.tracks.select("pid", "tid").row(0) == ("12", "-3")


def test_what_kineto_calls_by_name_is_kept_anywhere(way: Way) -> None:
    """The scan knows Kineto's arguments by heart, also in files of others."""
    args = {"External id": 1, "stream": 7, "Bytes": 5, "Collective name": "x", "dtype": "Float", "mine": [1]}
    found = way(chrome(event("mine", "a", args=args))).arguments(0)
    values = [value for value in found.values() if value is not None]
    for value in args.values():
        assert value in values


def test_categories_of_kineto_alone_do_not_lose_arguments(way: Way) -> None:
    trace = way(chrome(event("user_annotation", "a", args={"Ev Idx": 3, "Input Dims": [[1]]})))
    assert trace.info.format == "chrome"
    assert trace.arguments(0) == {"ev_idx": 3, "shapes": "[[1]]"}
