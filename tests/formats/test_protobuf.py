"""Messages of protocol buffers, whole and damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.protobuf import Value, fields, signed, text
from stepscope.trace.problems import Problems
from tests.builders.protobuf import message


def read(data: bytes, keep_cut: bool = False) -> tuple[list[tuple[int, int | bytes]], int]:
    """The fields, and how often something was damaged."""
    problems = Problems()
    found = [(number, plain(value)) for number, value in fields(memoryview(data), problems, keep_cut)]
    return found, sum(problem.count for problem in problems.all())


def plain(value: Value) -> int | bytes:
    """The value, compared with ease."""
    return value if isinstance(value, int) else bytes(value)


def test_every_wire_type() -> None:
    data = (
        message((1, 300), (2, "text"), (1000, -1))
        + b"\x19"
        + bytes([7, 0, 0, 0, 0, 0, 0, 0])
        + b"\x25\x08\0\0\0"
    )
    assert read(data) == ([(1, 300), (2, b"text"), (1000, 2**64 - 1), (3, 7), (4, 8)], 0)


def test_numbers_and_texts() -> None:
    assert [signed(value) for value in (0, 5, 2**63 - 1, 2**63, 2**64 - 1)] == [0, 5, 2**63 - 1, -(2**63), -1]
    assert text(memoryview("é<b>".encode())) == "é<b>"
    assert text(memoryview(b"a\xff\xc3")) == "a��"
    assert text(7) == ""


@pytest.mark.parametrize(
    "bad",
    [
        b"\x10",
        b"\x10" + b"\xff" * 10 + b"\x01",
        b"\x80" * 11,
        b"\x12\x05abc",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x11abc",
        b"\x15ab",
        b"\x13",
        b"\x14",
        b"\x16",
        b"\x17",
        b"\x00\x01",
        b"\xf8\xff\xff\xff\xff\x01\x01",
    ],
    ids=[
        "no value", "over-long number", "over-long key", "beyond the end", "length of 2^64", "short double",
        "short float", "group", "end of group", "type 6", "type 7", "field 0", "field 2^29 and more",
    ],
)  # fmt: skip
def test_damage_ends_the_message_and_is_counted(bad: bytes) -> None:
    assert read(message((1, 5), (2, "ok")) + bad) == ([(1, 5), (2, b"ok")], 1)


def test_what_is_cut_can_be_kept() -> None:
    assert read(b"\x12\x05abc", keep_cut=True) == ([(2, b"abc")], 1)
    assert read(b"\x11abc", keep_cut=True) == ([], 1)


def test_nesting_without_end_is_not_followed() -> None:
    bomb = b""
    for _ in range(5_000):
        bomb = message((1, bomb))
    assert read(bomb) == ([(1, bomb[3:] if len(bomb) < 16_387 else bomb[4:])], 0)


@given(data=st.binary(max_size=200), keep_cut=st.booleans())
def test_any_bytes(data: bytes, keep_cut: bool) -> None:
    found, damaged = read(data, keep_cut)
    assert damaged in (0, 1)
    assert sum(len(value) for _, value in found if isinstance(value, bytes)) <= len(data)


@given(
    written=st.lists(
        st.tuples(st.integers(1, 2**29 - 1), st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=300)))
    )
)
def test_what_is_written_is_read(written: list[tuple[int, int | bytes]]) -> None:
    assert read(message(*written)) == (written, 0)
