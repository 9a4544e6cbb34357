"""Members of events that come with the same bytes around them again and again, and then with others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.native.both import builds
from tests.native.scans import OP, document, scan

PLAIN = '"ph": "X", "cat": "op", "name": "add", "pid": 1, "tid": 2,\n "ts": 12345678.5, "dur": 5, "args": {"n": 7, "dims": [1, 2]}'


@pytest.fixture(scope="module", params=builds("json.events"))
def native(request: pytest.FixtureRequest) -> Any:
    """The scanner, compiled and interpreted."""
    return request.param


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace(": ", ":   "),
        PLAIN.replace(": ", ":"),
        PLAIN.replace(', "', ',,\t "'),
        PLAIN.replace('"n": 7, ', '"n": 7   , '),
        PLAIN.replace("]}", "] \n }"),
    ],
)
def test_other_blanks_than_before_change_nothing(native: Any, other: str) -> None:
    found = scan(native, document(PLAIN, PLAIN, other, PLAIN))
    assert found.bad() == {}
    assert found.events == [("X", "add", "op", 0, 12_345_678_500, 5_000)] * 4
    assert [row[1:4] for row in found.layouts[OP]] == [(7, None, "[1, 2]")] * 4


def test_other_members_than_before_are_read(native: Any) -> None:
    more = PLAIN.replace('"n": 7', '"m": 3, "n": 8').replace('"pid": 1', '"who": "me", "pid": 3')
    fewer = '"ph": "X", "name": "sub", "ts": 1, "dur": 2, "args": {}'
    found = scan(native, document(PLAIN, PLAIN, more, fewer, PLAIN))
    assert found.bad() == {}
    assert [event[1] for event in found.events] == ["add", "add", "add", "sub", "add"]
    assert found.tracks == [(1, 2), (3, 2), (None, None)]
    assert [row[1] for row in found.layouts[OP]] == [7, 7, 8, 7]
    assert [text for _, text in found.rest] == [b'{"who": "me"}', b'{"m": 3, "n": 8, "dims": [1, 2]}']


def test_the_document_may_be_cut_anywhere(native: Any) -> None:
    text = document(PLAIN, PLAIN, PLAIN.replace("add", "subtract"))
    whole = scan(native, text)
    for place in range(1, len(text)):
        found = scan(native, text[:place], text[place:])
        assert (found.events, found.layouts) == (whole.events, whole.layouts), place


def test_there_may_be_more_gaps_than_are_remembered(native: Any) -> None:
    events = [PLAIN.replace(' "tid"', " " * number + '"tid"') for number in range(1, 1200, 3)]
    events += [
        PLAIN.replace('"n": ', '"n":' + "\n" * (number % 97) + "\t" * (number // 97))
        for number in range(1200)
    ]
    found = scan(native, document(*events, PLAIN))
    assert found.bad() == {}
    assert found.events == [("X", "add", "op", 0, 12_345_678_500, 5_000)] * (len(events) + 1)
