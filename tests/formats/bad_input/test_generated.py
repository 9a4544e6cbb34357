"""Documents that nobody ever wrote, in all ways of reading: no failure, and the same tables from each."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.errors import UnreadableFile
from stepscope.formats.chrome.scan.vocabulary import VOCABULARY
from stepscope.trace.trace import Trace
from tests.formats.ways import Way, examples, with_each

pytestmark = pytest.mark.thorough

ARGUMENTS = [key.decode() for key, _, _ in VOCABULARY.keys]
CATEGORIES = [category.decode() for category, _ in VOCABULARY.categories] + ["mine", "fwdbwd", "ac2g"]
NAMES = [
    "a",
    "b",
    "ProfilerStep#1",
    "[memory]",
    "cudaLaunchKernel",
    "nn.Module: Linear_0",
    'q"uote',
    "é🔥",
    "",
]

small = st.integers(0, 6)
numbers = st.one_of(
    small,
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=4, allow_nan=False).map(float),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(NAMES))
nested: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
triples = st.lists(st.integers(-1, 2**33), min_size=2, max_size=4)
values: st.SearchStrategy[Any] = st.one_of(scalars, numbers, triples, nested)
times = st.one_of(small, st.decimals(0, 50, places=4).map(float))
arguments = st.dictionaries(st.one_of(st.sampled_from(ARGUMENTS), st.sampled_from(NAMES)), values, max_size=5)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """An event of any phase with anything in its arguments, on one of a few threads."""
    found: dict[str, Any] = {"ph": draw(st.sampled_from("XXXXBEiCbneSTFstfMPN?"))}
    found["ts"] = draw(times)
    if draw(st.booleans()):
        found["dur"] = draw(times)
    found |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(NAMES),
                "cat": st.sampled_from(CATEGORIES),
                "pid": st.one_of(small, st.sampled_from(["Spans", "", "GPU 0 Counters"])),
                "tid": small,
                "id": st.one_of(small, st.sampled_from(NAMES)),
                "bp": st.just("e"),
                "s": st.just("g"),
                "args": arguments,
            },
        )
    )
    return found


headers = st.fixed_dictionaries(
    {},
    optional={
        "schemaVersion": st.just(1),
        "deviceProperties": values,
        "distributedInfo": values,
        "baseTimeNanoseconds": values,
        "ERROR": values,
        "viztracer_metadata": values,
    },
)


def check_invariants(trace: Trace) -> None:
    """What holds of every trace, whatever it was read from."""
    found = trace.events
    assert found["id"].to_list() == list(range(len(found)))
    assert (found["dur_ns"] >= 0).all()
    ordered = found.sort("track", "start_ns", pl.col("dur_ns") * -1, maintain_order=True)
    assert ordered["id"].to_list() == found["id"].to_list()
    assert found["track"].is_in(trace.tracks["id"].implode()).all()
    inner = found.filter(pl.col("parent").is_not_null())
    outer = found.select(pl.all().gather(inner["parent"]))
    assert (outer["track"] == inner["track"]).all()
    assert (outer["id"] < inner["id"]).all()
    assert (outer["start_ns"] <= inner["start_ns"]).all()
    assert (outer["start_ns"] + outer["dur_ns"] >= inner["start_ns"] + inner["dur_ns"]).all()
    assert (outer["depth"] + 1 == inner["depth"]).all()
    for table, column in (("ops", "event"), ("kernels", "event"), ("links", "from"), ("links", "to")):
        assert (trace.tables[table][column] < len(found)).all()


def assert_same(one: Trace, other: Trace, name: str) -> None:
    for table, frame in one.tables.items():
        if table != "traces":
            assert_frame_equal(frame, other.tables[table], check_exact=True)
    for event in range(min(len(one.events), 8)):
        assert one.arguments(event) == other.arguments(event), name


@examples(30)
@given(headers, st.lists(events(), max_size=8))
def test_all_ways_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], found: list[dict[str, Any]]
) -> None:
    data = json.dumps(header | {"traceEvents": found}, ensure_ascii=False).encode()
    traces: list[Trace | str] = []

    def check(way: Way) -> None:
        try:
            trace = way(data)
        except UnreadableFile as error:
            traces.append(error.what)
            return
        check_invariants(trace)
        traces.append(trace)
        if isinstance(traces[0], Trace):
            assert_same(traces[0], trace, way.name)

    with_each(tmp_path_factory.mktemp("generated"), check)
    assert len({type(trace) for trace in traces}) == 1, traces


@examples(15)
@given(st.lists(events(), min_size=1, max_size=8))
def test_every_event_is_kept_or_counted(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, Any]]
) -> None:
    """Spans in halves become one; arrows become links; names become tracks; the rest are rows, or problems."""
    data = json.dumps(found).encode()

    def check(way: Way) -> None:
        try:
            trace = way(data)
        except UnreadableFile:
            return
        phases = [one["ph"] for one in found]
        rows = sum(phase not in "MstfEeF" for phase in phases)
        counted = dict(trace.problems.select("code", "count").iter_rows())
        left_out = sum(counted.get(code, 0) for code in ("untimed-events", "time-out-of-range", "bad-events"))
        second_halves = 0 if trace.info.format == "chrome" else sum(phase in "EeF" for phase in phases)
        assert len(trace.events) + left_out == rows + second_halves

    with_each(tmp_path_factory.mktemp("counted"), check)
