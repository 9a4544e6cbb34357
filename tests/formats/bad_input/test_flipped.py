"""Bytes that changed on the way: what they did not touch is read as before, and what they did is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.chrome.scan import parallel
from stepscope.formats.chrome.scan.parallel import scan
from stepscope.formats.reader import no_progress
from stepscope.formats.source import Source
from stepscope.native.json import events as native
from stepscope.trace.trace import Trace
from tests.builders.damage import document
from tests.builders.documents import codes
from tests.formats.ways import Way, examples, with_each

pytestmark = pytest.mark.thorough

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kineto" / "streams.pt.trace.json.gz"
SOME = document(40)
PACKED = gzip.compress(SOME.data)
FIRST, LAST = SOME.events[0][1], SOME.events[-1][2]

flips = st.tuples(st.integers(0, 1 << 30), st.integers(1, 255))


def flipped(data: bytes, *changes: tuple[int, int]) -> bytes:
    broken = bytearray(data)
    for place, mask in changes:
        broken[place % len(data)] ^= mask
    return bytes(broken)


def read_or_refused(path: Path) -> Trace | None:
    """The trace, or None for a file that is refused in words. Anything else is a failure."""
    try:
        return read(Source(str(path)))
    except UnreadableFile as error:
        assert str(error)
        return None


@examples(50)
@given(st.integers(FIRST, LAST - 1), st.integers(1, 255))
def test_one_byte_costs_at_most_the_event_that_it_is_in(
    tmp_path_factory: pytest.TempPathFactory, place: int, mask: int
) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    (folder / "x.json").write_bytes(flipped(SOME.data, (place, mask)))
    found = scan(Source(str(folder / "x.json")), no_progress)
    names = found.events["name"].to_list()
    before = [name for name, _, end in SOME.events if end <= place]
    assert names[: len(before)] == before
    missing = [name for name in SOME.others(place) if name not in names]
    counted = sum(problem.count for problem in found.problems.all())
    assert len(missing) <= 1
    assert len(names) + len(found.flows) + len(found.metadata) + counted >= len(SOME.events)


BRACES = document(8)


@pytest.mark.parametrize("byte", list(b'{}[]":,'), ids=chr)
@pytest.mark.parametrize("mask", [0x20, 0x01])
def test_one_bit_of_every_bracket_and_quote(tmp_path: Path, byte: int, mask: int) -> None:
    """A brace and a bracket are one bit apart: what follows must not vanish into the list that was never meant."""
    first, last = BRACES.events[0][1], BRACES.events[-1][2]
    for place in (at for at in range(first, last) if BRACES.data[at] == byte):
        (tmp_path / "x.json").write_bytes(flipped(BRACES.data, (place, mask)))
        found = scan(Source(str(tmp_path / "x.json")), no_progress)
        names = found.events["name"].to_list()
        missing = [name for name in BRACES.others(place) if name not in names]
        damaged = [one for one in BRACES.events if one[1] <= place < one[2]]
        assert len(missing) <= (0 if damaged else 1), place
        counted = sum(problem.count for problem in found.problems.all())
        assert len(names) + counted >= len(BRACES.events), place


@examples(10)
@given(st.lists(flips, min_size=1, max_size=8))
def test_many_bytes_never_fail(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = flipped(SOME.data, *changes)
    first = min(place % len(SOME.data) for place, _ in changes)

    def check(way: Way) -> None:
        trace = read_or_refused(way.put(data))
        if trace is not None and first >= FIRST:
            assert set(SOME.complete(first)) <= set(trace.events["name"])

    with_each(tmp_path_factory.mktemp("flipped"), check)


@examples(25)
@given(st.lists(flips, min_size=1, max_size=4))
def test_a_packed_file_with_flipped_bytes_is_never_silent(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = flipped(PACKED, *changes)
    path = tmp_path_factory.mktemp("flipped") / "x.json.gz"
    path.write_bytes(data)
    trace = read_or_refused(path)
    if trace is not None and sorted(map(str, trace.events["name"])) != sorted(SOME.complete(len(SOME.data))):
        assert codes(trace)


@examples(20)
@given(st.lists(flips, min_size=1, max_size=20), st.booleans())
def test_a_real_profile_with_flipped_bytes_never_fails(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], pack: bool
) -> None:
    whole = FIXTURE.read_bytes() if pack else gzip.decompress(FIXTURE.read_bytes())
    path = tmp_path_factory.mktemp("flipped") / "x.pt.trace.json"
    path.write_bytes(flipped(whole, *changes))
    read_or_refused(path)


@examples(15)
@given(st.binary(max_size=200), st.integers(0, len(SOME.data)), st.integers(0, 100))
def test_bytes_that_were_put_in_or_taken_out(
    tmp_path_factory: pytest.TempPathFactory, extra: bytes, place: int, lost: int
) -> None:
    path = tmp_path_factory.mktemp("changed") / "x.json"
    path.write_bytes(SOME.data[:place] + extra + SOME.data[place + lost :])
    trace = read_or_refused(path)
    if trace is not None and place >= FIRST:
        assert set(SOME.complete(place)) <= set(trace.events["name"])


@examples(15)
@given(st.binary(max_size=300))
def test_any_bytes_behind_a_bracket(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("noise") / "x.json"
    for begin in (b"[", b"{", b'{"traceEvents":[', b'{"traceEvents":[{"ph":"X","ts":1,"args":'):
        path.write_bytes(begin + noise)
        read_or_refused(path)


BRACKETS = document(300)


@pytest.mark.skipif(not native.COMPILED, reason="pieces are scanned side by side only where that is fast")
@pytest.mark.parametrize("at", [10, 70, 140, 200, 290])
@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_a_bracket_that_is_never_closed_costs_one_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, pieces: int
) -> None:
    monkeypatch.setattr(parallel, "PIECE_BYTES", len(BRACKETS.data) // pieces)
    monkeypatch.setattr("os.cpu_count", lambda: pieces)
    name, begin, end = BRACKETS.events[at]
    broken = BRACKETS.data[: end - 1] + b', "more": [[[[[[[[[[' + BRACKETS.data[end:]
    (tmp_path / "x.json").write_bytes(broken)
    found = scan(Source(str(tmp_path / "x.json")), no_progress)
    assert found.events["name"].to_list() == [one for one, _, _ in BRACKETS.events if one != name]
    (problem,) = found.problems.all()
    assert (problem.code, problem.count) == ("bad-events", 1)
    assert f"the first at byte {begin:,}; " in problem.detail
