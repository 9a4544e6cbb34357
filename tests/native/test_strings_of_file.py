"""Strings by their codes, and names by their rows."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native import strings_of_file
from stepscope.native.protobuf import name_table
from tests.native.both import builds, interpreted


@pytest.fixture(scope="module", params=builds("strings_of_file"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def interned(native: Any, words: list[bytes]) -> list[bytes]:
    """Each word again, by its code; and codes count from 0 without gaps."""
    data = b"".join(words)
    stops = [sum(map(len, words[: i + 1])) for i in range(len(words))]
    codes, spans = native.intern(data, array("q", [0, *stops][: len(words)]), array("q", stops), 5)
    assert sorted(set(codes)) == list(range(len(spans)))
    return [data[slice(*spans[code])] for code in codes]


def test_equal_strings_share_a_code(native: Any) -> None:
    assert interned(native, [b"ab", b"", b"ab", b"b", b""]) == [b"ab", b"", b"ab", b"b", b""]


@given(st.lists(st.binary(max_size=3)))
def test_any_strings(words: list[bytes]) -> None:
    assert interned(strings_of_file, words) == words


PLAIN = interpreted("protobuf.name_table")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=30),
    st.integers(0, (1 << 64) - 1),
)
def test_names_are_found_and_the_last_one_wins(keys: list[tuple[int, int]], odd: int) -> None:
    columns = array("I", [k[0] for k in keys]), array("q", [k[1] for k in keys]), array("I", range(len(keys)))
    table = name_table.table(*columns, odd | 1)
    assert table == PLAIN.table(*columns, odd | 1)
    held = {(d, i): row - 1 for d, i, row in zip(*table, strict=True) if row}
    assert held == {key: row for row, key in enumerate(keys)}
