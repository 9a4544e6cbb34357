"""Links whose ends are known by track and time alone."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.trace.trace import Trace
from tests.builders.tables import check, trace

EVENTS = """
    track  start  dur  name
    a          0  100  outer
    a         10   20  inner
    a         50    0  moment
    b         10   10  first
    b         30   10  second
    """
A, B = 0, 1


def flows(*rows: tuple[int, int, int, int], **columns: Any) -> pl.DataFrame:
    types = {"from_track": pl.UInt32, "from_ns": pl.Int64, "to_track": pl.UInt32, "to_ns": pl.Int64}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    return frame.with_columns(why=pl.lit("flow"), **columns)


def linked(found: Trace) -> list[tuple[str, str]]:
    name = found.events["name"].cast(pl.String)
    return list(zip(name.gather(found.links["from"]), name.gather(found.links["to"]), strict=True))


def test_an_end_is_the_innermost_event_there() -> None:
    found = trace(EVENTS, flows=flows((A, 15, B, 12), (A, 40, B, 30), (A, 10, B, 39), (A, 50, B, 19)))
    assert linked(found) == [
        ("outer", "second"),
        ("inner", "first"),
        ("inner", "second"),
        ("moment", "first"),
    ]
    assert found.problems.is_empty()


def test_arrows_that_lead_nowhere_are_counted() -> None:
    found = trace(EVENTS, flows=flows((A, 200, B, 12), (A, 15, B, 25), (A, 15, 9, 12), (A, 15, A, 16)))
    assert linked(found) == []
    check(
        found.problems,
        """
        code         severity  count
        loose-flows  info      4
        """,
    )
    assert found.problems["detail"][0] == "4 flows start or end where there is no event; they were left out."


def test_arrows_without_any_event_are_counted() -> None:
    found = trace("track  start  dur  name", flows=flows((A, 1, B, 2)))
    assert found.problems["count"].to_list() == [1]


def test_an_end_may_be_the_next_event() -> None:
    ends = ((A, 15, B, 5), (A, 15, B, 12), (A, 15, B, 30), (A, 15, B, 35))
    found = trace(EVENTS, flows=flows(*ends, to_next=pl.Series([True] * 4)))
    assert linked(found) == [
        ("inner", "first"),
        ("inner", "second"),
        ("inner", "second"),
        ("inner", "second"),
    ]


def test_flows_are_added_to_links() -> None:
    links = pl.DataFrame({"from": [0], "to": [3], "why": ["launch"]})
    found = trace(EVENTS, links=links, flows=flows((A, 15, B, 30)))
    check(
        found.links,
        """
        from  to  why
        0     3   launch
        1     4   flow
        """,
    )
