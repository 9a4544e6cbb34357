"""Files that are made to be slow, deep or large."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.native.both import builds
from tests.native.scans import OP, document, scan


@pytest.fixture(scope="module", params=builds("json.events"))
def native(request: pytest.FixtureRequest) -> Any:
    """The scanner, compiled and interpreted."""
    return request.param


@pytest.mark.parametrize("bomb", ["[", "{", '{"a":', '[{"a":[', '{"ph":'])
def test_nesting_bombs_are_one_bad_event(native: Any, bomb: str) -> None:
    deep = bomb * (1_000_000 if native.COMPILED else 10_000)
    found = scan(
        native,
        document('"ph": "i", "ts": 1', f'"ph": "i", "ts": 2, "args": {{"x": {deep}', '"ph": "i", "ts": 3'),
    )
    assert [event[4] for event in found.events] == [1000, 3000]
    assert found.counts["bad_events"] >= 1
    assert found.counts["bad_bytes"] >= len(deep)


def test_nesting_of_a_sane_depth_is_no_bomb(native: Any) -> None:
    deep = "[" * 30 + '{"y": ' * 30 + "1" + "}" * 30 + "]" * 30
    found = scan(native, document(f'"ph": "i", "ts": 1, "args": {{"x": {deep}}}'))
    assert found.rest == [(0, f'{{"x": {deep}}}'.encode())]
    assert found.bad() == {}


def colliding(pairs: int) -> list[bytes]:
    """Strings of one length and one hash, whatever its seed: bits that cancel each other out, in each pair of words."""
    one = bytes(range(65, 81))
    other = bytes(byte ^ (0x80 if i in (7, 11, 15) else 0) for i, byte in enumerate(one))
    return [b"".join(choice) for choice in product((one, other), repeat=pairs)]


def test_strings_that_were_made_to_collide(native: Any) -> None:
    names = colliding(14 if native.COMPILED else 8)
    events = b",".join(b'{"ph":"i","ts":1,"name":"' + name + b'"}' for name in names)
    found = scan(native, b"[" + events + b"," + events + b"]")
    assert [event[1].encode(errors="surrogateescape") for event in found.events] == names + names
    assert found.bad() == {}


def test_collisions_are_what_they_are_meant_to_be() -> None:
    strings = builds("strings")[1].values[0].Strings(12345)
    names = colliding(3)
    for name in names:
        strings.code_of(name)
    assert len(set(strings.hashes[: len(names)])) == 1


@pytest.mark.parametrize(
    "broken",
    [
        b',{"name":"a" x',  # each would go on to the end of the line
        b',{"ph":"i","x":[',  # each contains the next, as deep as may be
        b',{"args":{"x":[',
        b',{"ph":"i","x":{"y":"',
    ],
)
def test_broken_events_inside_each_other_do_not_take_forever(native: Any, broken: bytes) -> None:
    count = 100_000 if native.COMPILED else 500
    text = b'[{"ph": "i", "ts": 1}' + broken * count + b"\n!" + b"]" * 300 + b',{"ph": "i", "ts": 2}]'
    found = scan(native, text)
    assert found.events[0][4] == 1000
    assert found.counts["bad_bytes"] <= len(text)


def test_every_column_grows(native: Any) -> None:
    count = 3000
    events = []
    for i in range(count):
        args = f'"n": {i}, "dims": "d{i}", "more": {{"text": "{"x" * 40}{i}"}}'
        events.append(
            f'"ph": "X", "ts": {i}, "dur": 1, "cat": "op", "name": "n{i}", "pid": {i}, "id": {i}, "args": {{{args}}}'
        )
        events.append(f'"ph": "s", "ts": {i}, "id": {i}, "tid": {i}')
        events.append(f'"ph": "M", "name": "m{i}", "pid": {i}, "args": {{"name": "{i}"}}')
    found = scan(native, document(*events))
    assert found.bad() == {}
    assert [event[1] for event in found.events] == [f"n{i}" for i in range(count)]
    assert [event[4] for event in found.events] == [i * 1000 for i in range(count)]
    assert [found.tracks[event[3]] for event in found.events] == [(i, None) for i in range(count)]
    assert [row[:4] for row in found.layouts[OP]] == [(i, i, None, f"d{i}") for i in range(count)]
    assert [flow[2] for flow in found.flows] == list(range(count))
    assert [meta[0] for meta in found.metas] == [f"m{i}" for i in range(count)]
    assert found.asyncs == [(i, i) for i in range(count)]
    assert len(found.rest) == 2 * count
    assert found.rest[-1] == (-count, f'{{"name": "{count - 1}"}}'.encode())


def test_one_string_larger_than_all_room(native: Any) -> None:
    name, args = "x" * 300_000, f'{{"y": "{"z" * 300_000}"}}'
    found = scan(
        native, document(f'"ph": "i", "ts": 1, "name": "{name}", "args": {args}', '"ph": "i", "ts": 2')
    )
    assert found.events == [("i", name, None, 0, 1000, 0), ("i", None, None, 0, 2000, 0)]
    assert found.rest == [(0, args.encode())]
