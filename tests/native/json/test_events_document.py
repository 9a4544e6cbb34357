"""The document round the events: headers, windows, pieces, cuts, and places that are not JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.native.both import builds
from tests.native.scans import Read, document, new_scanner, run, scan, told

# Something of everything; the window tests cut it everywhere.
RICH = (
    b'\xef\xbb\xbf{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a \\" ]"}],\n "traceEvents": [\n'
    b'{"ph": "X", "cat": "op", "name": "a\\"b", "pid": 1, "tid": "t", "ts": 1700000000000000.123, "dur": 1.5, '
    b'"args": {"n": 1, "dims": [[1, 2], ["x"]], "grid": [1, 2, 3], "more": {"x": [N/A]}}, "tts": -1e3},,\n'
    b'{"ph": "s", "id": 18446744073709551615, "ts": 2, "pid": 1, "tid": 1, "bp": "e"}, {}, {"name": "lost"},\n'
    b'{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}, "garbage" {"n": 1},\n'
    b'{"ph": "X", "name": "quo"ted", "ts": "5", "dur": inf, "args": {"Bytes": -5}},\n'
    b'{"ph": "b", "id": "0x1", "ts": 3, "args": {"collective": "c"}}, {"ph": "i", bad}, {"ph": "i", "ts": 9}],\n'
    b' "traceName": "t.json", "flag": true}\n'
)


@pytest.fixture(scope="module", params=builds("json.events"))
def native(request: pytest.FixtureRequest) -> Any:
    """The scanner, compiled and interpreted."""
    return request.param


def same(found: Read, other: Read) -> None:
    """The same tables and counts. Places are those of the last window, and where bad bytes end may depend on it."""
    for read in (found, other):
        read.position = 0
        read.counts |= {"first_bad": 0, "bad_bytes": 0}
    assert found == other


def test_the_rich_document(native: Any) -> None:
    found = scan(native, RICH)
    assert found.ended == native.DONE
    assert [event[:3] for event in found.events] == [
        ("X", 'a\\"b', "op"),
        ("X", 'quo"ted', None),
        ("b", None, None),
        ("i", None, None),
    ]
    bad = {
        "empty": 1,
        "without_phase": 1,
        "bad_events": 2,
        "repaired": 1,
        "without_duration": 1,
        "unread_values": 1,
    }
    assert {**found.bad(), "bad_bytes": 0} == {**bad, "bad_bytes": 0}
    assert found.header == [
        (b"schemaVersion", b"1"),
        (b"deviceProperties", b'[{"id": 0, "name": "a \\" ]"}]'),
        (b"traceName", b'"t.json"'),
        (b"flag", b"true"),
    ]


def test_a_document_in_two_windows_cut_at_every_byte(native: Any) -> None:
    for cut in range(len(RICH) + 1):
        same(scan(native, RICH[:cut], RICH[cut:]), scan(native, RICH))


def test_a_document_byte_by_byte(native: Any) -> None:
    same(scan(native, *(RICH[i : i + 1] for i in range(len(RICH)))), scan(native, RICH))


EVENTS = [
    '"ph": "X", "ts": 1, "dur": 2, "name": "a", "args": {"n": 1}',
    '"ph": "i", "ts": 3',
    '"ph": "s", "ts": 4, "id": 1',
]


def test_a_document_that_is_cut_keeps_all_complete_events(native: Any) -> None:
    written = document(*EVENTS)
    ends = [written.index(f"{{{event}}}".encode()) + len(event) + 2 for event in EVENTS]
    for cut in range(len(written)):
        found = scan(native, written[:cut])
        assert found.ended == native.MORE
        assert len(found.events) + len(found.flows) == sum(end <= cut for end in ends)
        assert found.bad() == {}
        assert found.position <= cut


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b" \r\n\t", b"\xef\xbb\xbf \n"])
def test_a_bare_array(native: Any, head: bytes) -> None:
    scanner = new_scanner(native)
    scanner.feed(head + b'[{"ph": "i", "ts": 1}]', 0)
    assert scanner.run() == native.DONE
    assert scanner.is_bare_array()
    assert not scanner.is_inside_events()
    assert scanner.counts()["events"] == 1


@pytest.mark.parametrize("text", [b"hello", b'"traceEvents"', b"12", b"]", b"\xff\xfe{\x00"])
def test_not_json(native: Any, text: bytes) -> None:
    found = scan(native, text.lstrip(b"\0"))
    assert found.ended == native.NOT_JSON


@pytest.mark.parametrize(
    "text", [b"", b"  \n", b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b"{", b"[", b'{"a', b'{"a"', b'{"a":1']
)
def test_too_little_to_say(native: Any, text: bytes) -> None:
    assert scan(native, text).ended == native.MORE


@pytest.mark.parametrize(
    "text",
    [b"{}", b"[]", b'{"traceEvents": []}', b'{"traceEvents":[],}', b"{,}", b'{"traceEvents": [ , , ]}'],
)
def test_nothing_in_it(native: Any, text: bytes) -> None:
    found = scan(native, text)
    assert (found.ended, found.events, found.bad()) == (native.DONE, [], {})


def test_members_before_and_after_the_events(native: Any) -> None:
    header = {"a": 1, "b": {"traceEvents": [{"ph": "i", "ts": 1}]}, "c": [[]], "d": "x, y", "e": None}
    text = json.dumps(header)[:-1] + ', "traceEvents": [{"ph": "i", "ts": 1}], "z": -1.5e3, "z": "again"}'
    found = scan(native, text.encode())
    assert len(found.events) == 1
    assert [(key.decode(), json.loads(value)) for key, value in found.header] == [
        *header.items(),
        ("z", -1500.0),
        ("z", "again"),
    ]


def test_two_lists_of_events(native: Any) -> None:
    found = scan(
        native, b'{"traceEvents": [{"ph": "i", "ts": 1}], "a": 1, "traceEvents": [{"ph": "i", "ts": 2}]}'
    )
    assert [event[4] for event in found.events] == [1000, 2000]
    assert found.header == [(b"a", b"1")]


@pytest.mark.parametrize(
    "key", ["traceEvent", "traceEvents2", "TraceEvents", "traceEvenst", "xraceEvents", ""]
)
def test_other_lists_are_part_of_the_header(native: Any, key: str) -> None:
    found = scan(native, f'{{"{key}": [{{"ph": "i", "ts": 1}}]}}'.encode())
    assert (found.events, [k for k, _ in found.header]) == ([], [key.encode()])


def test_events_that_are_no_list_are_part_of_the_header(native: Any) -> None:
    found = scan(native, b'{"traceEvents": {"ph": "i"}, "a": 1}')
    assert found.header == [(b"traceEvents", b'{"ph": "i"}'), (b"a", b"1")]


@pytest.mark.parametrize(
    "junk",
    [
        b"junk",
        b"1, 2",
        b"[]",
        b'"text"',
        b'{"x" 1}',
        b'{"ph": "i", "ts": 1',
        b'{"ts": 1, "name": "a"~',
        b"{{}",
        b"\xff\x00",
    ],
)
def test_events_around_a_bad_place_are_kept(native: Any, junk: bytes) -> None:
    found = scan(native, b'[{"ph": "i", "ts": 1}, ' + junk + b', {"ph": "i", "ts": 2}, {"ph": "i", "ts": 3}]')
    assert [event[4] for event in found.events if event[4] > 1000] == [2000, 3000]
    assert found.ended == native.DONE
    assert found.counts["bad_events"] == (2 if junk == b"1, 2" else 1)
    assert found.counts["first_bad"] == 23
    assert len(junk) - 2 <= found.counts["bad_bytes"] <= len(junk) + 2


@pytest.mark.parametrize(
    "junk", [b"junk,", b'"a" 1, ', b'"a\nb": 2, ', b'"deep": ' + b"[" * 300 + b"]" * 300 + b", "]
)
def test_members_around_a_bad_place_are_kept(native: Any, junk: bytes) -> None:
    found = scan(native, b'{"first": 1, ' + junk + b'"last": 2, "traceEvents": [{"ph": "i", "ts": 1}]}')
    assert [pair for pair in found.header if pair[0] in (b"first", b"last")] == [
        (b"first", b"1"),
        (b"last", b"2"),
    ]
    assert len(found.events) == 1


def test_an_event_without_an_end_can_be_given_up(native: Any) -> None:
    text = b'[{"ph": "i", "ts": 1}, {"ph": "i", "x": [[1, {"ph": "i", "ts": 2}, {"ph": "i", "ts": 3}'
    scanner = new_scanner(native)
    scanner.feed(text, 0)
    assert scanner.run() == native.MORE
    assert scanner.position() == text.index(b'{"ph": "i", "x"')
    assert scanner.give_up()
    assert scanner.run() == native.MORE
    assert [event[4] for event in told(native, scanner, 0, []).events] == [1000, 2000, 3000]
    assert not scanner.give_up()
    assert scanner.counts()["bad_bytes"] == text.index(b'{"ph": "i", "ts": 2}') - text.index(
        b'{"ph": "i", "x"'
    )


def test_pieces_join_exactly(native: Any) -> None:
    events = [f'"ph": "X", "ts": {i}, "dur": 1, "name": "n{i % 3}", "pid": {i % 2}' for i in range(6)]
    text = document(*events)
    whole = scan(native, text)
    for event in events[1:]:
        at = text.index(f"{{{event}}}".encode())
        first, second = new_scanner(native), new_scanner(native)
        first.feed(text, 0, at)
        assert first.run() == native.STOPPED
        assert first.position() == at
        second.feed(text, at)
        second.begin_inside()
        assert run(native, second, text, []) == native.DONE
        parts = [told(native, scanner, 0, []) for scanner in (first, second)]
        timed = [
            [(ph, name, part.tracks[track], *rest) for ph, name, _, track, *rest in part.events]
            for part in parts
        ]
        assert timed[0] + timed[1] == [
            (ph, name, whole.tracks[track], *rest) for ph, name, _, track, *rest in whole.events
        ]


def test_a_piece_goes_on_where_the_next_one_was_wrong(native: Any) -> None:
    text = document(*EVENTS)
    scanner = new_scanner(native)
    scanner.feed(text, 0, text.index(b"args"))
    assert scanner.run() == native.STOPPED
    scanner.feed(text, scanner.position(), -1)
    assert scanner.run() == native.DONE
    same(told(native, scanner, native.DONE, []), scan(native, text))
