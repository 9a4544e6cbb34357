"""From draft to trace: events sorted, nested and numbered, and every reference follows them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from tests.builders.tables import check, draft, trace


def test_events_are_sorted_by_track_start_and_longer_first() -> None:
    found = trace("""
        track  start  dur  name
        b          5    1  last
        a          3    1  inner
        a          3    9  outer
        a          0    2  first
        b          0    1  other
        """)
    check(
        found,
        """
        id  track  start  dur  name   parent  depth
        0   b      0      1    other  -       0
        1   b      5      1    last   -       0
        2   a      0      2    first  -       0
        3   a      3      9    outer  -       0
        4   a      3      1    inner  3       1
        """,
    )


def test_nesting() -> None:
    found = trace("""
        track  start  dur  name
        a          0  100  root
        a         10   30  child
        a         10   30  same times
        a         20    5  grandchild
        a         40    0  at the end
        a         60   40  until the end
        a        100    1  after
        b         10    5  elsewhere
        """)
    check(
        found,
        """
        name           parent  depth
        root           -       0
        child          0       1
        same times     1       2
        grandchild     2       3
        at the end     0       1
        until the end  0       1
        after          -       0
        elsewhere      -       0
        """,
    )


def test_what_outlives_its_parent_is_its_sibling() -> None:
    found = trace("""
        track  start  dur  name
        a          0   10  parent
        a          5   10  outlives
        a         12    2  inside
        """)
    check(
        found,
        """
        name      parent  depth
        parent    -       0
        outlives  -       0
        inside    1       1
        """,
    )
    check(
        found.problems,
        """
        code             severity  count
        outlives-parent  info      1
        """,
    )


def test_annotations_of_torch_overlap_what_begins_and_ends_them() -> None:
    found = trace("""
        track  start  dur  name                                                kind
        a          0    4  <built-in_method__record_function_enter_new_of_x>  python
        a          2   10  forward                                             annotation
        a         10    5  torch/autograd/profiler.py(860):__exit__            python
        """)
    assert found.problems.is_empty()


def test_work_on_a_stream_is_queued_and_never_nested() -> None:
    found = trace("""
        track     start  dur  name
        stream 7      0   10  a
        stream 7      2    3  b
        stream 7      5   10  c
        over 7        0   20  range
        over 7        1   10  inner range
        """)
    check(
        found,
        """
        name         parent  depth
        a            -       0
        b            -       0
        c            -       0
        range        -       0
        inner range  3       1
        """,
    )
    assert found.problems.is_empty()


def test_ops_of_a_tpu_nest() -> None:
    made = draft("""
        track     start  dur  name
        stream 0      0   10  while
        stream 0      2    3  fusion
        """)
    made.tracks = made.tracks.with_columns(device_kind=pl.lit("tpu"))
    check(
        finish(made),
        """
        name    parent
        while   -
        fusion  0
        """,
    )


def test_negative_durations_become_zero() -> None:
    found = trace("""
        track  start  dur  name
        a         10   -4  back in time
        a          0   20  around
        """)
    check(
        found,
        """
        start  dur  name          depth
        0      20   around        0
        10     0    back in time  1
        """,
    )
    check(
        found.problems,
        """
        code               severity  count
        negative-duration  warning   1
        """,
    )


EVENTS = """
    track     start  dur  name    kind
    stream 7      9    1  late    kernel
    stream 7      5    1  early   kernel
    main          1    1  launch  runtime
    main          0    5  op      op
    main          0   10  call    python
    """


def test_references_follow_their_events() -> None:
    found = trace(
        EVENTS,
        links=pl.DataFrame({"from": [2, 2], "to": [0, 1], "why": ["launch", "launch"]}),
        ops=pl.DataFrame({"event": [3], "shapes": ["[[1]]"]}),
        kernels=pl.DataFrame({"event": [0, 1], "registers": [10, 20]}),
        copies=pl.DataFrame({"event": [1], "bytes": [5]}),
        memory=pl.DataFrame({"event": [None, 3], "time_ns": [7, 2], "bytes": [64, -64]}),
        collectives=pl.DataFrame({"event": [0], "name": ["allreduce"]}),
        cold={"more": pl.DataFrame({"event": [0, 3], "x": [1, 2]})},
    )
    check(
        found,
        """
        id  name
        0   early
        1   late
        2   call
        3   op
        4   launch
        """,
    )
    check(
        found.links,
        """
        from  to  why
        4     0   launch
        4     1   launch
        """,
    )
    check(
        found.kernels,
        """
        event  registers  op
        0      20         3
        1      10         3
        """,
    )
    check(
        found.ops,
        """
        event  shapes  python_parent
        3      [[1]]   2
        """,
    )
    check(
        found.copies,
        """
        event  bytes
        0      5
        """,
    )
    check(
        found.memory,
        """
        event  time_ns  bytes
        3      2        -64
        -      7        64
        """,
    )
    check(
        found.collectives,
        """
        event  name
        1      allreduce
        """,
    )
    assert found.arguments(1) == {"x": 1}
    assert found.arguments(3) == {"x": 2}
    assert found.arguments(0) == {}


def test_the_op_that_a_reader_named_counts_where_no_launch_is_known() -> None:
    found = trace(
        EVENTS,
        links=pl.DataFrame({"from": [2], "to": [0], "why": ["launch"]}),
        kernels=pl.DataFrame({"event": [0, 1], "op": [4, 4]}),
    )
    check(
        found.kernels,
        """
        event  op
        0      2
        1      3
        """,
    )


def test_a_python_parent_that_a_reader_named_is_kept() -> None:
    found = trace(EVENTS, ops=pl.DataFrame({"event": [3], "python_parent": [2]}))
    check(
        found.ops,
        """
        event  python_parent
        3      4
        """,
    )


def test_nothing_at_all() -> None:
    found = trace("track  start  dur  name")
    assert {name: found.tables[name].schema for name in TABLES} == {
        name: pl.Schema(columns) for name, columns in TABLES.items()
    }
    assert {name: len(frame) for name, frame in found.tables.items()} == {
        name: int(name == "traces") for name in TABLES
    }


def test_tables_have_their_schemas() -> None:
    found = trace(EVENTS, kernels=pl.DataFrame({"event": [0], "grid": [[1, 2, 3]]}))
    for name, columns in TABLES.items():
        assert found.tables[name].schema == pl.Schema(columns)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 15)), max_size=40))
def test_nesting_of_anything(spans: list[tuple[int, int, int]]) -> None:
    lines = [f"t{track}  {start}  {dur}  e" for track, start, dur in spans]
    found = trace("\n".join(["track  start  dur  name", *lines])).events
    by_id = {row["id"]: row for row in found.iter_rows(named=True)}
    for row in by_id.values():
        outer = by_id.get(row["parent"])
        if outer is None:
            assert row["depth"] == 0
            continue
        assert outer["id"] < row["id"]
        assert outer["track"] == row["track"]
        assert outer["start_ns"] <= row["start_ns"]
        assert outer["start_ns"] + outer["dur_ns"] >= row["start_ns"] + row["dur_ns"]
        assert outer["depth"] + 1 == row["depth"]
    assert len(found) == len(spans)


@given(st.permutations(range(6)))
def test_the_order_of_the_file_does_not_matter(order: list[int]) -> None:
    lines = [f"t{i % 2}  {i * 3 % 5}  {i + 1}  event {i}" for i in range(6)]
    mixed = "\n".join(["track  start  dur  name", "t0  0  0  x", "t1  0  0  x", *(lines[i] for i in order)])
    plain = "\n".join(["track  start  dur  name", "t0  0  0  x", "t1  0  0  x", *lines])
    assert trace(mixed).events.equals(trace(plain).events)


@pytest.mark.parametrize("depth", [1, 300, 70_000])
def test_very_deep_nesting(depth: int) -> None:
    frame = draft("track  start  dur  name\na  0  0  x")
    frame.events = pl.DataFrame(
        {
            "track": pl.zeros(depth, dtype=pl.UInt32, eager=True),
            "name": pl.Series(["x"] * depth),
            "kind": pl.Series(["span"] * depth),
            "source_category": pl.Series([None] * depth, dtype=pl.String),
            "start_ns": pl.int_range(depth, eager=True),
            "dur_ns": pl.int_range(depth, 0, -1, eager=True) * 2,
        }
    )
    found = finish(frame).events
    assert found["parent"].to_list() == [None, *range(depth - 1)]
    assert found["depth"].max() == min(depth - 1, 2**16 - 1)
