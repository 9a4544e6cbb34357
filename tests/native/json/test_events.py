"""Events of each kind, as the scanner's columns hold them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.native.both import builds
from tests.native.scans import COLLECTIVE, MEMORY, OP, Read, document, scan


@pytest.fixture(scope="module", params=builds("json.events"))
def native(request: pytest.FixtureRequest) -> Any:
    """The scanner, compiled and interpreted."""
    return request.param


def whole(native: Any, *events: str) -> Read:
    """What is read of a list of events in which nothing is wrong."""
    found = scan(native, document(*events))
    assert found.ended == native.DONE
    assert found.bad() == {}
    return found


def test_a_complete_event(native: Any) -> None:
    found = whole(native, '"ph": "X", "cat": "op", "name": "add", "pid": 1, "tid": 2, "ts": 10, "dur": 5')
    assert found.events == [("X", "add", "op", 0, 10_000, 5_000)]
    assert found.tracks == [(1, 2)]


@pytest.mark.parametrize("phase", "BEXiICnbeSTpFNODPvVRc(,)=")
def test_phases_that_lie_in_time(native: Any, phase: str) -> None:
    found = whole(native, f'"ph": "{phase}", "name": "a", "ts": 1, "dur": 0')
    assert found.events == [(phase, "a", None, 0, 1000, 0)]


def test_members_come_in_any_order_and_may_be_missing(native: Any) -> None:
    found = whole(native, '"dur":2,"ts":1,"ph":"X"', '"ts": 3, "ph": "i"')
    assert found.events == [("X", None, None, 0, 1000, 2000), ("i", None, None, 0, 3000, 0)]
    assert found.tracks == [(None, None)]


def test_the_last_of_equal_members_counts(native: Any) -> None:
    found = whole(
        native, '"ph": "B", "ph": "X", "name": "a", "name": "b", "ts": 1, "ts": 2, "dur": 9, "dur": 3'
    )
    assert found.events == [("X", "b", None, 0, 2000, 3000)]


def test_null_stands_for_nothing(native: Any) -> None:
    found = whole(
        native, '"ph": "i", "ts": 1, "name": null, "cat": null, "pid": null, "id": null, "args": null'
    )
    assert found.events == [("i", None, None, 0, 1000, 0)]
    assert (found.asyncs, found.rest, found.tracks) == ([], [], [(None, None)])


def test_names_that_are_no_strings_are_kept_as_they_stand(native: Any) -> None:
    found = whole(native, '"ph": "i", "ts": 1, "name": 12, "cat": ["a", "b"]')
    assert found.events == [("i", "12", '["a", "b"]', 0, 1000, 0)]


def test_tracks_are_numbered_as_they_are_met(native: Any) -> None:
    at = '"ph": "i", "ts": 1'
    found = whole(
        native,
        f'{at}, "pid": 1, "tid": 1',
        f'{at}, "pid": 1, "tid": -1',
        f'{at}, "pid": "Spans", "tid": 1',
        f'{at}, "pid": 1, "tid": 1',
        f'{at}, "pid": "1", "tid": 1',
    )
    assert found.tracks == [(1, 1), (1, -1), ("Spans", 1), ("1", 1)]
    assert [event[3] for event in found.events] == [0, 1, 2, 0, 3]


def test_flows(native: Any) -> None:
    found = whole(
        native,
        '"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 5, "pid": 1, "tid": 2, "ts": 1.5',
        '"ph": "t", "id": "0xff", "pid": 1, "tid": 2, "ts": 2',
        '"ph": "f", "bp": "e", "id": 5, "pid": 0, "tid": 7, "ts": 3, "other": 1, "args": {"n": 1}',
        '"ph": "f", "bp": null, "ts": 3, "pid": 0, "tid": 7',
    )
    assert found.events == []
    assert found.flows == [
        (1500, 0, 5, "ac2g", "ac2g", "s", False),
        (2000, 0, "0xff", None, None, "t", False),
        (3000, 1, 5, None, None, "f", True),
        (3000, 1, None, None, None, "f", False),
    ]
    assert found.rest == [], "what belongs to a flow must not be taken for the next event's"


def test_metadata(native: Any) -> None:
    found = whole(
        native,
        '"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "ts": 9, "args": {"name": "main"}',
        '"ph": "M", "name": "process_sort_index", "pid": "Spans", "other": 1',
        '"ph": "i", "ts": 1, "args": {"unknown": 1}',
    )
    assert found.metas == [("thread_name", 1, 2), ("process_sort_index", "Spans", None)]
    assert found.rest == [(-1, b'{"name": "main"}'), (0, b'{"unknown": 1}')]


def test_ids_of_async_events(native: Any) -> None:
    found = whole(
        native,
        '"ph": "b", "ts": 1, "id": 7',
        '"ph": "b", "ts": 1',
        '"ph": "b", "ts": 1, "id": "0x1a"',
        '"ph": "b", "ts": 1, "id2": {"local": "0x2"}',
        '"ph": "b", "ts": 1, "id2": null',
    )
    assert found.asyncs == [(0, 7), (2, "0x1a"), (3, '{"local": "0x2"}')]


def test_arguments_of_a_known_category(native: Any) -> None:
    args = '"n": 3, "share": 12.5, "dims": [[2, 3], []], "grid": [4, 5, 6]'
    found = whole(native, f'"ph": "X", "ts": 1, "dur": 1, "cat": "op", "args": {{{args}}}')
    assert found.layouts[OP] == [(0, 3, 12_500_000_000, "[[2, 3], []]", 4, 5, 6)]
    assert found.rest == []


def test_an_argument_that_is_missing(native: Any) -> None:
    found = whole(native, '"ph": "i", "ts": 1, "cat": "op", "args": {}', '"ph": "i", "ts": 1, "cat": "op"')
    assert found.layouts[OP] == [(0, *[None] * 6), (1, *[None] * 6)]
    assert found.rest == []


def test_an_argument_tells_the_layout_where_the_category_does_not(native: Any) -> None:
    found = whole(
        native,
        '"ph": "i", "ts": 1, "args": {"Bytes": 5}',
        '"ph": "i", "ts": 1, "cat": "op", "args": {"Bytes": 5}',
        '"ph": "i", "ts": 1, "cat": "op", "args": {"collective": "all_reduce", "n": 2}',
    )
    assert found.layouts[MEMORY] == [(0, 5)]
    assert found.layouts[COLLECTIVE] == [(2, "all_reduce", 2)]
    assert [row[:2] for row in found.layouts[OP]] == [(1, None), (2, 2)]
    assert found.rest == [(1, b'{"Bytes": 5}')], "the layout of op has no room for it"


@pytest.mark.parametrize(
    "args",
    [
        '{"unknown": 1}',
        '{"n": 1, "unknown": {"deep": [1, {"er": "}"}]}}',
        '{"n": 1, "n": 2}',
        '{"n": N/A}',
        '{"n": 1.5}',
        '{"n": "x"}',
        '{"n": {}}',
        '{"n": 18446744073709551616}',
        '{"share": inf}',
        '{"share": 1e30}',
        '{"grid": [1, 2]}',
        '{"grid": [1, 2, 3, 4]}',
        '{"grid": [1, 2, "x"]}',
        '{"grid": [1, 2, [3]]}',
        '{"grid": 7}',
        "[1, 2]",
        '"text"',
        "12",
    ],
)
def test_arguments_without_a_column_are_kept_as_text(native: Any, args: str) -> None:
    found = scan(native, document(f'"ph": "i", "ts": 1, "cat": "op", "args": {args}'))
    assert found.ended == native.DONE
    assert len(found.events) == 1
    assert found.rest == [(0, args.encode())]


@pytest.mark.parametrize(
    "args", ['{"n": 7}', '{"n": "7"}', '{"n": 7.0}', '{"n": 0.7e1}', '{"n":7,}', '{,,"n":7 }']
)
def test_integers_in_any_dress(native: Any, args: str) -> None:
    found = whole(native, f'"ph": "i", "ts": 1, "cat": "op", "args": {args}')
    assert found.layouts[OP][0][:2] == (0, 7)
    assert found.rest == []


def test_truth_is_an_integer(native: Any) -> None:
    found = whole(
        native, *(f'"ph": "i", "ts": 1, "cat": "op", "args": {{"n": {n}}}' for n in ("true", "false"))
    )
    assert [row[1] for row in found.layouts[OP]] == [1, 0]


def test_slots_of_another_event_are_not_taken_over(native: Any) -> None:
    found = whole(
        native,
        '"ph": "i", "ts": 1, "cat": "op", "args": {"n": 1, "grid": [1, 2, 3]}',
        '"ph": "i", "ts": 1, "cat": "op", "args": {"grid": [4, 5]}',
    )
    assert found.layouts[OP][1] == (1, *[None] * 6)


def test_members_that_nobody_knows_are_kept(native: Any) -> None:
    found = whole(native, '"ph": "i", "ts": 1, "tts": 5, "x y": {"a": "]"}, "s": "t"', '"ph": "i", "ts": 1')
    assert found.rest == [(0, b'{"tts": 5}'), (0, b'{"x y": {"a": "]"}}')]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("", "empty"),
        (" , ,", "empty"),
        ('"ts": 1, "name": "a"', "without_phase"),
        ('"ph": "", "ts": 1', "without_phase"),
        ('"ph": 5, "ts": 1', "without_phase"),
        ('"ph": "X", "dur": 1', "untimed"),
        ('"ph": "X", "dur": 1, "ts": null', "untimed"),
        ('"ph": "X", "dur": 1, "ts": "soon"', "untimed"),
        ('"ph": "X", "dur": 1, "ts": 1e16', "out_of_range"),
        ('"ph": "X", "dur": 1e16, "ts": 1', "out_of_range"),
        ('"ph": "s", "ts": 1e16', "out_of_range"),
    ],
)
def test_events_that_get_no_row_are_counted(native: Any, event: str, why: str) -> None:
    found = scan(
        native, document('"ph": "i", "ts": 1', event + ', "other": 1' if event.strip(" ,") else event)
    )
    assert found.ended == native.DONE
    assert len(found.events) == 1
    assert {name: n for name, n in found.bad().items() if name != "unread_values"} == {why: 1}
    assert found.rest == []


def test_a_complete_event_without_a_duration_is_kept_and_counted(native: Any) -> None:
    found = scan(
        native, document('"ph": "X", "ts": 1', '"ph": "X", "ts": 1, "dur": N/A', '"ph": "B", "ts": 1')
    )
    assert [event[4:] for event in found.events] == [(1000, 0)] * 3
    assert found.bad() == {"without_duration": 2, "unread_values": 1}


def repeating(*events: str) -> bytes:
    """Each of the events three times over, all of one category: what follows what is known after the first round."""
    return document(*(f'"ph": "X", "ts": 1, "dur": 1, "cat": "op", {event}' for event in events * 3))


def test_arrays_that_begin_alike_are_kept_apart(native: Any) -> None:
    dims = ["[[1]]", "[[1], [2]]", "[]", '["a"]', '["a", "b"]', "[[1]]"]
    found = scan(native, repeating(*(f'"name": "n", "args": {{"dims": {each}}}' for each in dims)))
    assert [row[3] for row in found.layouts[OP]] == dims * 3
    assert found.bad() == {}


def test_a_string_that_looks_like_the_begin_of_an_array_is_not_expected_as_one(native: Any) -> None:
    dims = ["[]", '"[[1"', "[]", "[[1, 2]]"]
    found = scan(native, repeating(*(f'"name": "n", "args": {{"dims": {each}}}' for each in dims)))
    assert [row[3] for row in found.layouts[OP]] == ["[]", "[[1", "[]", "[[1, 2]]"] * 3
    assert found.bad() == {}


def test_what_is_repaired_is_counted_as_often_as_it_is_met(native: Any) -> None:
    found = scan(native, repeating('"name": "a"b", "args": {"dims": ["c"d"]}'))
    assert [row[1] for row in found.events] == ['a"b'] * 3
    assert [row[3] for row in found.layouts[OP]] == ['["c"d"]'] * 3
    assert found.bad() == {"repaired": 6}


def test_names_that_begin_alike_are_kept_apart(native: Any) -> None:
    names = ["mm", "mm_out", r"mm\"", "m", "12345678", "123456789", "", "mm"]
    found = scan(native, repeating(*(f'"name": "{name}", "args": {{}}' for name in names)))
    assert [row[1] for row in found.events] == names * 3
    assert found.bad() == {}


@pytest.mark.parametrize(
    "written", ['"n":1', '"n" :1', '"n": 1', '"n"\n:\n1', '"share": 0.5, "n": 1', '"nn": 1, "n": 1']
)
def test_keys_in_any_dress_where_another_is_expected(native: Any, written: str) -> None:
    found = scan(native, repeating('"args": {"n": 1, "dims": []}', f'"args": {{{written}}}'))
    assert [row[1] for row in found.layouts[OP]] == [1] * 6
    assert found.bad() == {}


def test_a_long_name_that_ends_inside_a_word_is_met_again(native: Any) -> None:
    name = "n" * 200_005
    found = scan(native, repeating(f'"name": "{name}"'))
    assert [row[1] for row in found.events] == [name] * 3
