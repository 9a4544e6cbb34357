"""Which step an event belongs to: each marker counts once, and device work goes with its launch."""

from __future__ import annotations

import polars as pl

from tests.builders.tables import check, trace


def test_events_belong_to_the_marker_that_they_start_in() -> None:
    found = trace("""
        track  start  dur  name            kind
        main      10   10  ProfilerStep#3  annotation
        main      20   10  ProfilerStep#4  annotation
        main       5    1  before          op
        main       8   20  across          op
        other     15    1  in 3            op
        other     20    1  in 4            op
        other     29    9  late in 4       op
        other     30    1  after           op
        """)
    check(
        found,
        """
        name            step  role
        before          -     -
        across          -     -
        ProfilerStep#3  3     step
        ProfilerStep#4  4     step
        in 3            3     -
        in 4            4     -
        late in 4       4     -
        after           -     -
        """,
    )


def test_a_marker_on_host_and_device_is_one_step() -> None:
    found = trace("""
        track   start  dur  name            kind
        main       10   10  ProfilerStep#3  annotation
        over 7     14    9  ProfilerStep#3  annotation
        """)
    check(
        found,
        """
        track   name            role  step
        main    ProfilerStep#3  step  3
        over 7  ProfilerStep#3  -     3
        """,
    )


def test_markers_that_only_the_device_has_count() -> None:
    found = trace("""
        track   start  dur  name            kind
        over 7     10   10  ProfilerStep#3  annotation
        main       12    1  op              op
        """)
    check(
        found,
        """
        name            role  step
        ProfilerStep#3  step  3
        op              -     3
        """,
    )


def test_device_work_has_the_step_of_its_launch() -> None:
    found = trace(
        """
        track     start  dur  name            kind
        main          0   10  ProfilerStep#3  annotation
        main         10   10  ProfilerStep#4  annotation
        main          5    1  launch          runtime
        stream 7     12    1  launched        kernel
        stream 7     14    1  unknown launch  kernel
        stream 7     50    1  much later      kernel
        """,
        links=pl.DataFrame({"from": [2, 2, 1], "to": [3, 5, 4], "why": ["launch", "launch", "flow"]}),
    )
    check(
        found,
        """
        name            step
        ProfilerStep#3  3
        launch          3
        ProfilerStep#4  4
        launched        3
        unknown launch  4
        much later      3
        """,
    )


def test_numbers_that_a_reader_gave_win_over_names() -> None:
    found = trace("""
        track  start  dur  name      role  step
        main       0   10  train 99  step  7
        main      10   10  train 98  step  8
        main      12    1  op        -     -
        """)
    check(
        found,
        """
        name      step
        train 99  7
        train 98  8
        op        8
        """,
    )


def test_markers_without_numbers_are_counted_in_time() -> None:
    found = trace("""
        track  start  dur  name        role
        main      20   10  train_step  step
        main       0   10  train_step  step
        main      25    1  op          -
        """)
    check(
        found,
        """
        name        start  step
        train_step  0      0
        train_step  20     1
        op          25     1
        """,
    )


def test_a_number_that_no_step_has() -> None:
    found = trace("""
        track  start  dur  name                          role
        main       0   10  ProfilerStep#99999999999999  step
        """)
    assert found.events["step"].to_list() == [0]


def test_no_markers_no_steps() -> None:
    found = trace("""
        track  start  dur  name
        main       0   10  op
        """)
    assert found.events["step"].to_list() == [None]
