"""Begins and ends."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NO_NAME = 0xFFFFFFFF
Row = tuple[int, int, int]  # track, phase, name
Pairs = tuple[list[tuple[int, int]], list[int], list[int]]


@pytest.fixture(scope="module", params=builds("spans.begin_end"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def paired(native: Any, rows: list[Row]) -> Pairs:
    """(pairs, unmatched begins, unmatched ends)."""
    track, phase, name = (array(code, (row[i] for row in rows)) for i, code in enumerate("IBI"))
    begins, ends, open_begins, open_ends = native.pair(track, phase, name)
    return list(zip(begins, ends, strict=True)), list(open_begins), list(open_ends)


def by_hand(rows: list[Row]) -> Pairs:
    """One stack per track, searched from the top."""
    stacks: dict[int, list[int]] = {}
    pairs, open_begins, open_ends = [], [], []
    for row, (track, phase, name) in enumerate(rows):
        stack = stacks.setdefault(track, [])
        if phase == 1:
            stack.append(row)
        elif phase == 2:
            fits = [
                at
                for at, begin in enumerate(stack)
                if NO_NAME in (name, rows[begin][2]) or rows[begin][2] == name
            ]
            if not fits:
                open_ends.append(row)
                continue
            pairs.append((stack[fits[-1]], row))
            open_begins += stack[fits[-1] + 1 :]
            del stack[fits[-1] :]
    return pairs, sorted(open_begins + [row for stack in stacks.values() for row in stack]), open_ends


def parse(text: str) -> list[Row]:
    """'B1 E1 E?' as rows of one track; '|' starts the next one."""
    rows: list[Row] = []
    track = 0
    for word in text.split():
        if word == "|":
            track += 1
        else:
            rows.append((track, "-BE".find(word[0]), NO_NAME if word[1] == "?" else int(word[1])))
    return rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ([], [], [])),
        ("B1 B2 E2 E1", ([(1, 2), (0, 3)], [], [])),
        ("B1 B2 E? E?", ([(1, 2), (0, 3)], [], [])),
        ("B1 B2 B3 E1", ([(0, 3)], [1, 2], [])),
        ("B1 E2 E1 E1", ([(0, 2)], [], [1, 3])),
        ("B1 B? E2 E1", ([(1, 2), (0, 3)], [], [])),
        ("B1 | E1 B1 | E1", ([], [0, 2], [1, 3])),
        ("B1 -1 E1", ([(0, 2)], [], [])),
    ],
    ids=[
        "none",
        "nested",
        "nameless ends",
        "left open",
        "strange ends",
        "nameless begin",
        "tracks",
        "other phase",
    ],
)
def test_pair(native: Any, text: str, expected: Pairs) -> None:
    assert paired(native, parse(text)) == expected


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([1, 1, 2, 2, 0]), st.sampled_from([0, 1, 2, NO_NAME])),
        max_size=40,
    )
)
def test_pair_follows_from_its_definition(native: Any, rows: list[Row]) -> None:
    rows.sort(key=lambda row: row[0])
    assert paired(native, rows) == by_hand(rows)


def test_many_ends_that_fit_none_of_many_begins(native: Any) -> None:
    n = 50_000
    pairs, begins, ends = paired(native, [(0, 1, 1)] * n + [(0, 2, 2)] * n)
    assert (pairs, len(begins), len(ends)) == ([], n, n)
