"""Messages split into fields."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.protobuf import wire
from tests.builders.protobuf import double, number, packed, varint
from tests.native.both import builds, interpreted

BYTES, CUT = wire.BYTES, wire.BYTES + wire.CUT


@pytest.fixture(scope="module", params=builds("protobuf.wire"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


class Split(NamedTuple):
    """What a splitter found: fields, chunks, and what went wrong."""

    fields: list[tuple[int, ...]]
    chunks: list[tuple[int, ...]]
    trouble: tuple[int, ...]


def split(
    native: Any, data: bytes, spans: list[tuple[int, int]] | None = None, bulk: int = 0, stride: int = 8
) -> Split:
    """All fields as (message, number, form, first, last), and chunks as (message, first, last, count)."""
    spans = [(0, len(data))] if spans is None else spans
    room = 4 * len(data) + 4
    fields = [array(code, [0]) * room for code in "IIBqq"]
    chunks = [array(code, [0]) * room for code in "Iqqq"]
    splitter = native.Splitter(data, bulk, stride)
    splitter.reserve(fields, chunks)
    count, chunk_count, *trouble = splitter.run(
        array("q", [s[0] for s in spans]), array("q", [s[1] for s in spans])
    )
    return Split(
        list(zip(*(column[:count] for column in fields), strict=True)),
        list(zip(*(column[:chunk_count] for column in chunks), strict=True)),
        tuple(trouble),
    )


def values(found: Split) -> list[tuple[int, ...]]:
    return [row[1:] for row in found.fields]


def test_each_kind_of_field(native: Any) -> None:
    data = (
        number(1, 300) + packed(2, "abc") + double(3, 1.5) + varint(4 << 3 | 5) + b"\1\0\0\0" + number(5, -2)
    )
    found = split(native, data)
    assert values(found) == [
        (1, 0, 300, 0),
        (2, BYTES, 5, 8),
        (3, 1, 0x3FF8000000000000, 0),
        (4, 5, 1, 0),
        (5, 0, -2, 0),
    ]
    assert found.trouble == (0, 0, 0, -1)


def test_many_messages(native: Any) -> None:
    data = number(1, 7) + number(1, 8)
    assert [row[0] for row in split(native, data, [(0, 2), (2, 4), (0, 4)]).fields] == [0, 1, 2, 2]


def test_the_longest_varint_and_one_byte_more(native: Any) -> None:
    assert values(split(native, b"\x08" + b"\xff" * 9 + b"\x01")) == [(1, 0, -1, 0)]
    found = split(native, number(1, 1) + b"\x08" + b"\xff" * 10 + b"\x01" + number(1, 2))
    assert values(found) == [(1, 0, 1, 0)]
    assert found.trouble == (
        0,
        1,
        14,
        2,
    )  # the message is left where it broke, and the bytes after are counted


def test_a_field_past_its_message_is_clipped(native: Any) -> None:
    found = split(native, number(1, 1) + b"\x12\x7fabc")
    assert values(found) == [(1, 0, 1, 0), (2, CUT, 4, 7)]
    assert found.trouble == (1, 0, 0, -1)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        b"\x07\x00",
        b"\x0e",
        b"\x0f",
        b"\x0c",
        b"\x80",
        b"\x0d\0\0\0",
        b"\x09\0",
        b"\xff" * 5 + b"\x7f",
    ],
)
def test_no_protobuf(native: Any, data: bytes) -> None:
    found = split(native, data)
    assert found.fields == []
    assert found.trouble == (0, 1, len(data), 0)


def test_groups_are_stepped_over(native: Any) -> None:
    group = varint(3 << 3 | 3) + number(1, 5) + packed(2, "x") + double(3, 1.0) + varint(3 << 3 | 4)
    assert [row[:2] for row in values(split(native, group + number(4, 9)))] == [(3, 3), (4, 0)]


def test_a_nesting_bomb_costs_no_stack(native: Any) -> None:
    bomb = varint(1 << 3 | 3) * 200_000
    assert split(native, bomb).trouble == (0, 1, len(bomb), 0)
    closed = bomb + varint(1 << 3 | 4) * 200_000
    assert [row[:2] for row in values(split(native, closed + number(2, 1)))] == [(1, 3), (2, 0)]


def test_the_bulk_comes_in_chunks(native: Any) -> None:
    data = number(1, 1) + b"".join(packed(4, bytes(4)) for _ in range(5)) + packed(2, "name") + packed(4, b"")
    found = split(native, data, bulk=4, stride=12)
    assert [row[:2] for row in values(found)] == [(1, 0), (2, BYTES)]
    assert sum(chunk[3] for chunk in found.chunks) == 6
    assert [chunk[1:3] for chunk in found.chunks] == [(0, 14), (14, 26), (26, len(data))]


def test_a_cut_event_is_no_event(native: Any) -> None:
    data = packed(4, b"whole") + b"\x22\x7fcut"
    found = split(native, data, bulk=4)
    assert [chunk[3] for chunk in found.chunks] == [1]
    assert found.trouble[0] == 1


def test_groups_and_cut_fields_are_no_part_of_a_chunk(native: Any) -> None:
    event, group = packed(4, b"x"), varint(3 << 3 | 3) + varint(3 << 3 | 4)
    found = split(native, event + group + event * 2 + b"\x22\x7f", bulk=4, stride=99)
    assert [chunk[1:] for chunk in found.chunks] == [(0, 3, 1), (5, 11, 2)]


def test_too_little_room_is_told(native: Any) -> None:
    data = number(1, 1) * 5
    splitter = native.Splitter(data, 0, 8)
    splitter.reserve([array(code, [0]) * 2 for code in "IIBqq"], [array(code, [0]) for code in "Iqqq"])
    assert splitter.run(array("q", [0]), array("q", [len(data)]))[0] == 5
    splitter = native.Splitter(packed(4, b"") * 5, 4, 1)
    splitter.reserve([array(code, [0]) for code in "IIBqq"], [array(code, [0]) * 2 for code in "Iqqq"])
    assert splitter.run(array("q", [0]), array("q", [10]))[:2] == (0, 5)


def test_spans_outside_the_data_are_ignored(native: Any) -> None:
    assert split(native, b"\x08\x01", [(-1, 2), (0, 3), (2, 1), (0, 2)]).fields == [(3, 1, 0, 1, 0)]


FIELDS = st.one_of(
    st.builds(number, st.integers(1, 20), st.integers(-(1 << 63), (1 << 64) - 1)),
    st.builds(packed, st.integers(1, 20), st.binary(max_size=20)),
    st.builds(double, st.integers(1, 20), st.floats()),
)


@given(st.lists(FIELDS), st.integers(0, 6))
def test_all_fields_are_found(parts: list[bytes], bulk: int) -> None:
    data = b"".join(parts)
    found = split(wire, data, bulk=bulk)
    assert found.trouble == (0, 0, 0, -1)
    assert len(found.fields) + sum(chunk[3] for chunk in found.chunks) == len(parts)


PLAIN = interpreted("protobuf.wire")


@given(st.one_of(st.binary(max_size=200), st.lists(FIELDS).map(b"".join)), st.data())
def test_both_builds_agree_on_any_bytes(data: bytes, draw: Any) -> None:
    if data and draw.draw(st.booleans()):
        at = draw.draw(st.integers(0, len(data) - 1))
        data = data[:at] + bytes([draw.draw(st.integers(0, 255))]) + data[at + 1 :]
    bulk = draw.draw(st.integers(0, 6))
    assert split(wire, data, bulk=bulk) == split(PLAIN, data, bulk=bulk)
