"""The critical path of replayed steps, in both builds, against the replay's rules written out and against changes of one item."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

Item = tuple[int, int, int, int, int, int, int]  # kind, host, stream, device, delay, back, last
STREAMS = 2
ITEMS = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1)), st.integers(0, 9), st.integers(0, STREAMS - 1), st.integers(0, 12),
        st.integers(0, 3), st.sampled_from((0, 0, 1, 2, 5, 1 << 31)), st.sampled_from((0, 0, 1)),
    ),
    min_size=1, max_size=25,
)  # fmt: skip


@pytest.fixture(params=builds("host.replay"), scope="module")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def columns(items: Sequence[Item]) -> tuple[Any, ...]:
    kind, host, stream, device, delay, back, last = zip(*items, strict=True)
    wide = (array("q", each) for each in (host, device, delay))
    work, on_device, late = wide
    return bytes(kind), work, array("I", stream), on_device, late, array("I", back), bytes(last), STREAMS


def played(items: Sequence[Item]) -> tuple[list[int], list[int], list[int]]:
    """When the host came to each item, when its work was done, and when each step was over."""
    free, now = [0] * STREAMS, 0
    come: list[int] = []
    done: list[int] = []
    ends: list[int] = []
    for item, (kind, host, stream, device, delay, back, last) in enumerate(items):
        awaited = free if not back else done[item - back : item - back + 1] if back <= item else []
        now = max(now, *awaited) if kind and awaited else now
        now += host
        if not kind and device:
            free[stream] = max(now + delay, free[stream]) + device
        come.append(now)
        done.append(0 if kind else free[stream])  # without work of its own: when what was before it is done
        if last:
            ends.append(max(now, *done))
    return come, done, ends


def path_of(native: Any, items: Sequence[Item]) -> list[tuple[int, int, int]]:
    """step, item, what in time order."""
    step, item, what, ends = native.critical_path(*columns(items))
    assert list(ends) == list(native.replay(*columns(items)))
    return list(zip(step, item, what, strict=True))[::-1]


def lengths(native: Any, items: Sequence[Item]) -> list[int]:
    ends = list(native.replay(*columns(items)))
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def changed(items: Sequence[Item], item: int, column: int, value: int) -> list[Item]:
    found = [list(each) for each in items]
    found[item][column] = value
    return [tuple(each) for each in found]  # type: ignore[misc]


@given(ITEMS)
def test_the_replay_is_that_of_its_rules(native: Any, items: list[Item]) -> None:
    assert list(native.replay(*columns(items))) == played(items)[2]


@given(ITEMS)
def test_the_path_fills_each_step(native: Any, items: list[Item]) -> None:
    """Only what was under way when the step began may reach out of it."""
    come, done, ends = played(items)
    for step, begin, end in zip(range(len(ends)), [0, *ends], ends, strict=False):
        at = end
        for _, item, what in reversed([row for row in path_of(native, items) if row[0] == step]):
            _, host, _, device, delay, _, _ = items[item]
            assert at > begin
            if what == native.DEVICE:
                assert done[item] == at
            if what == native.HOST:
                assert come[item] == at
            at -= {native.HOST: host, native.LAUNCH: delay, native.DEVICE: device}[what]
        assert at <= begin


@given(ITEMS, st.data())
def test_what_is_on_the_path_shortens_the_step_until_another_path_takes_over(
    native: Any, items: list[Item], data: st.DataObject
) -> None:
    column = {native.HOST: 1, native.DEVICE: 3}
    rows = [row for row in path_of(native, items) if row[2] in column and items[row[1]][column[row[2]]] > 0]
    if not rows:
        return
    step, item, what = data.draw(st.sampled_from(rows))
    length, ns = lengths(native, items)[step], items[item][column[what]]
    halved = length - lengths(native, changed(items, item, column[what], ns // 2))[step]
    dropped = length - lengths(native, changed(items, item, column[what], 0))[step]
    assert halved == min(ns - ns // 2, dropped)


@given(ITEMS, st.data())
def test_what_is_off_the_path_does_not_change_the_step(
    native: Any, items: list[Item], data: st.DataObject
) -> None:
    come, done, ends = played(items)
    on = {(item, what) for _, item, what in path_of(native, items)}
    moments = [(item, 1, native.HOST, at) for item, at in enumerate(come)]
    moments += [(item, 3, native.DEVICE, at) for item, at in enumerate(done) if at and items[item][3]]
    off = [row for row in moments if (row[0], row[2]) not in on and ends and row[3] <= ends[-1]]
    if not off:
        return
    item, column, _, at = data.draw(st.sampled_from(off))
    step = bisect_left(ends, at)
    shorter = changed(items, item, column, items[item][column] // 2)
    assert lengths(native, shorter)[step] == lengths(native, items)[step]


def test_no_items(native: Any) -> None:
    assert [
        list(each)
        for each in native.critical_path(
            b"", array("q"), array("I"), array("q"), array("q"), array("I"), b"", 1
        )
    ] == [[], [], [], []]
