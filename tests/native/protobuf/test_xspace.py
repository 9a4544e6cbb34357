"""Events and stats as columns, from whole, cut and damaged bytes."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.protobuf import name_table, wire, xspace
from tests.builders.protobuf import double, number, packed
from tests.native.both import builds, interpreted
from tests.native.protobuf.test_wire import split

ODD = 0x9E3779B97F4A7C15
# Stat names: 1 to 4 link events, 5 raises the flag 2, 6 has no meaning; the last two are those of aggregates.
STAT_PART, STAT_FLAG = bytes([1, 2, 3, 4, 0, 0, 0, 0]), bytes([0, 0, 0, 0, 2, 0, 0, 0])
KINDS = bytes((line + name + flags) & 255 for line in range(16) for name in range(16) for flags in range(256))


@pytest.fixture(scope="module", params=builds("protobuf.xspace"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


class Run:
    """A decoder over one chunk, with room for so many rows."""

    def __init__(self, native: Any, data: bytes, events: int, room: int = 64) -> None:
        table = name_table.table(
            array("I", [0] * 2 + [1] * 6),
            array("q", [10, 11, 1, 2, 3, 4, 5, 6]),
            array("I", [0, 1, 0, 1, 2, 3, 4, 5]),
            ODD,
        )
        self.decoder = native.Decoder(data, table, ODD)
        self.decoder.lines(array("I", [0]), bytes([3]), array("q", [1_000]))
        self.decoder.meaning(STAT_PART, STAT_FLAG, bytes([0, 5]), KINDS)
        self.columns = [array(code, [0]) * events for code in "IIqqB"]
        self.decoder.columns(0, self.columns)
        self.rows: dict[str, list[Any]] = {}
        for name, rows in self.decoder.rows().items():
            self.rows[name] = [array(code, [0]) * room for code in "IIqq"]
            rows.reserve(*self.rows[name])
        self.done = self.decoder.chunk(0, 0, len(data))

    def found(self, name: str) -> list[tuple[int, ...]]:
        count = self.decoder.rows()[name].state()[0]
        wide = 4 if name in ("strings", "blobs") else 3
        return list(zip(*(column[:count] for column in self.rows[name][:wide]), strict=True))

    def events(self) -> list[tuple[int, ...]]:
        """Name, start, dur of each event."""
        return list(zip(*self.columns[1:4], strict=True))

    def everything(self) -> Any:
        return (
            [list(column) for column in self.columns],
            {name: self.found(name) for name in self.rows},
            self.decoder.trouble(),
        )


def event(*parts: bytes) -> bytes:
    return packed(4, b"".join(parts))


def stat(*parts: bytes) -> bytes:
    return packed(4, b"".join(parts))


def test_times_are_rounded_on_one_grid(native: Any) -> None:
    data = event(number(1, 10), number(2, 499), number(3, 1)) + event(
        number(1, 11), number(2, 500), number(3, 999)
    )
    data += event(number(2, -500), number(3, 0)) + event(number(2, -501), number(3, 1))
    run = Run(native, data, 4)
    assert [row[1:] for row in run.events()] == [(1000, 1), (1001, 0), (1000, 0), (999, 1)]
    assert [row[0] for row in run.events()] == [0, 1, xspace.UNNAMED, xspace.UNNAMED]


def test_each_type_of_stat(native: Any) -> None:
    stats = [
        stat(number(1, 6), number(4, -5)),
        stat(number(1, 6), number(3, 5)),
        stat(number(1, 6), number(3, (1 << 64) - 1)),
        stat(number(1, 6), double(2, 1.5)),
        stat(number(1, 6), packed(5, "text")),
        stat(number(1, 6), packed(6, b"blob")),
        stat(number(1, 6), number(7, 5)),
        stat(number(1, 6), number(7, 99)),
        stat(number(1, 99), number(4, 1)),
        stat(number(1, 6)),
    ]
    data = event(number(1, 10), *stats)
    run = Run(native, data, 1)
    assert run.found("ints") == [(0, 5, -5), (0, 5, 5), (0, 5, 99), (0, xspace.UNNAMED + 99, 1)]
    assert run.found("words") == [(0, 5, -1)]
    assert run.found("reals") == [(0, 5, 0x3FF8000000000000)]
    assert run.found("refs") == [(0, 5, 4)]
    for name, text in (("strings", b"text"), ("blobs", b"blob")):
        ((_, _, first, last),) = run.found(name)
        assert data[first:last] == text
    assert run.decoder.trouble() == (0, 0, 0)


def test_links(native: Any) -> None:
    data = event(stat(number(1, 1), number(4, 77)), stat(number(1, 2), number(3, 15)))
    data += event(stat(number(1, 3), number(3, (1 << 64) - 2)))
    run = Run(native, data, 2)
    assert run.found("producers") == [(0, 15, 77)]
    assert run.found("consumers") == [(1, 0, -2)]
    assert run.found("ints") == run.found("words") == []


def test_the_kind_comes_from_line_name_and_flags(native: Any) -> None:
    flagged = stat(number(1, 5), number(4, 1))
    data = (
        event(number(1, 10))
        + event(number(1, 11))
        + event(number(1, 11), flagged)
        + event(number(1, 99), flagged)
    )
    assert list(Run(native, data, 4).columns[4]) == [3, 3 + 5, 3 + 5 + 2, 3 + 2]


def test_aggregates_have_no_place_in_time(native: Any) -> None:
    run = Run(native, event(number(1, 10), number(5, 12), number(3, 5_000_000)), 1)
    assert run.events() == [(0, 1000, 0)]
    assert run.found("ints") == [(0, 6, 12), (0, 7, 5_000_000)]
    assert run.columns[4][0] == 3 + xspace.AGGREGATE


def test_times_beyond_reason_are_moved_and_counted(native: Any) -> None:
    run = Run(
        native, event(number(2, (1 << 63) - 1), number(3, (1 << 63) - 1)) + event(number(2, -(1 << 63))), 2
    )
    limit = ((1 << 62) - 1000 + 500) // 1000
    assert [(row[1] - 1000, row[2]) for row in run.events()] == [(limit, limit), (-limit, 0)]
    assert run.decoder.trouble()[2] == 2


def test_what_breaks_in_an_event_costs_only_its_rest(native: Any) -> None:
    broken = packed(4, number(1, 10) + number(2, 7_000) + b"\x18" + b"\xff" * 11)
    deep = packed(4, number(1, 11) + packed(4, b"\x08\x05\x22\x7f"))
    run = Run(native, event(number(1, 10)) + broken + deep + event(number(1, 11), number(2, 9_000)), 4)
    assert run.events() == [(0, 1000, 0), (0, 1007, 0), (1, 1000, 0), (1, 1009, 0)]
    assert run.decoder.trouble() == (2, 0, 0)


def test_unknown_fields_and_forms_are_counted(native: Any) -> None:
    data = event(
        number(9, 1), packed(1, "x"), double(3, 1.0), stat(number(1, 6), number(9, 1), packed(4, "x"))
    )
    run = Run(native, data, 1)
    assert run.decoder.trouble() == (0, 5, 0)
    group = packed(4, number(1, 10) + b"\x1b\x1c" + number(2, 1_000))
    assert Run(native, group, 1).decoder.trouble() == (1, 0, 0)


def test_a_full_column_can_be_undone_and_given_room(native: Any) -> None:
    data = event(stat(number(1, 6), number(4, 1))) + event(
        *(stat(number(1, 6), number(4, i)) for i in range(5))
    )
    run = Run(native, data, 2, room=0)
    assert not run.done
    run.decoder.undo([0] * 12)
    for room in (3, 64):
        assert run.decoder.rows()["ints"].state() == (0, True)
        run.rows["ints"] = [array(code, [0]) * room for code in "IIqq"]
        run.decoder.rows()["ints"].reserve(*run.rows["ints"])
        mark = run.decoder.mark()
        done = run.decoder.chunk(0, 0, len(data))
        if not done:
            run.decoder.undo(mark)
    assert done
    assert [row[2] for row in run.found("ints")] == [1, 0, 1, 2, 3, 4]


def test_single_stats(native: Any) -> None:
    one, two = number(1, 6) + number(4, 1), number(1, 5) + packed(5, "x")
    run = Run(native, one + two, 0)
    spans = [
        array("I", [7, 8]),
        array("I", [0, 0]),
        array("q", [0, len(one)]),
        array("q", [len(one), len(one + two)]),
    ]
    assert run.decoder.stats(*spans)
    assert run.found("ints")[-1] == (7, 5, 1)
    assert [row[:2] for row in run.found("strings")] == [(8, 4)]


def test_chunks_outside_the_data_hold_nothing(native: Any) -> None:
    run = Run(native, event(number(1, 10)), 4)
    for first, last in ((-5, 2), (50, 60), (3, 1)):
        assert run.decoder.chunk(0, first, last)


STATS = st.builds(
    lambda ident, value: stat(number(1, ident), value),
    st.integers(-1, 7),
    st.one_of(
        st.builds(number, st.sampled_from([3, 4, 7]), st.integers(-(1 << 63), (1 << 64) - 1)),
        st.builds(double, st.just(2), st.floats()),
        st.builds(packed, st.sampled_from([5, 6]), st.binary(max_size=8)),
    ),
)
EVENTS = st.builds(
    lambda fields, stats: event(*fields, *stats),
    st.lists(
        st.builds(number, st.sampled_from([1, 2, 3, 5, 9]), st.integers(-(1 << 63), (1 << 64) - 1)),
        max_size=4,
    ),
    st.lists(STATS, max_size=4),
)
PLAIN = interpreted("protobuf.xspace")


@given(st.lists(EVENTS, max_size=6).map(b"".join), st.data())
def test_both_builds_agree_on_damaged_events(data: bytes, draw: Any) -> None:
    for _ in range(draw.draw(st.integers(0, 2)) if data else 0):
        at = draw.draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    data = data[: draw.draw(st.integers(0, len(data)))]
    most = len(data) // 2 + 1
    assert Run(xspace, data, most, 500).everything() == Run(PLAIN, data, most, 500).everything()
    for _, first, last, count in split(wire, data, bulk=4, stride=40).chunks:
        run = Run(xspace, data[first:last], most, 500)
        assert run.decoder.mark()[0] == count  # the splitter and the decoder see the same events
