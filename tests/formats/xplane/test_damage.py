"""XPlane files that are cut, flipped or made up: every complete event is kept, and what is lost is told."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepscope.errors import StepscopeError
from stepscope.formats.xplane import decode as xplane_decode
from stepscope.formats.xplane import index, links
from stepscope.trace.trace import Trace
from tests.builders.documents import codes
from tests.builders.files import load
from tests.builders.protobuf import number, packed
from tests.builders.xspace_bytes import PlaneBytes, Ref, gpu_job, space
from tests.corpus.naive_xplane import decode, varint
from tests.native.both import interpreted
from tests.sample import SOAKS

pytestmark = pytest.mark.thorough

# Each example is a whole load. The soak takes as many as its profile says.
FEWER = settings() if SOAKS else settings(max_examples=15)
WHOLE = space(*gpu_job(), warnings=["late"], hosts=["box"])


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def _build(request: pytest.FixtureRequest) -> Iterator[None]:
    """The reader over both builds of its hot loops."""
    if request.param == "compiled":
        yield
        return
    with (
        mock.patch.object(index, "wire", interpreted("protobuf.wire")),
        mock.patch.multiple(
            xplane_decode,
            xspace=interpreted("protobuf.xspace"),
            strings_of_file=interpreted("strings_of_file"),
            name_table=interpreted("protobuf.name_table"),
        ),
        mock.patch.object(links, "link", interpreted("links").link),
    ):
        yield


def read_events(data: bytes) -> Trace | None:
    """The trace, or None where the reader says that there is none; anything but its own error is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return load(data, Path(folder))
        except StepscopeError:
            return None


def own_events(trace: Trace) -> pl.DataFrame:
    return trace.events.filter(pl.col("source_category") != "derived")


def cut_plane(events: int, keep: int) -> bytes:
    """A plane with so many events, cut after some bytes of its last one."""
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", i * 1_000, 500, n=i) for i in range(events)])
    data = packed(1, packed(2, "/host:CPU") + packed(3, plane.lines[0]))
    return data[: len(data) - keep]


@pytest.mark.usefixtures("_build")
def test_the_whole_file() -> None:
    trace = read_events(WHOLE)
    assert trace is not None
    assert len(own_events(trace)) == 22
    assert codes(trace) == {"capture-warning": 1}


@pytest.mark.usefixtures("_build")
def test_a_cut_line_keeps_its_complete_events(tmp_path: Path) -> None:
    trace = load(cut_plane(5, 3), tmp_path)
    assert trace.events["start_ns"].to_list() == [0, 1, 2, 3]
    assert trace.events["name"].to_list() == ["event #1"] * 4
    assert [trace.arguments(i) for i in range(2)] == [{"stat #1": 0}, {"stat #1": 1}]
    (problem,) = trace.problems.to_dicts()
    assert problem["code"] == "truncated"
    assert problem["severity"] == "error"
    assert problem["detail"] == (
        f"It ends at byte {len(cut_plane(5, 3))}, in the middle of a message, after 4 complete events. "
        "Whole threads may be missing: no speed-up is promised."
    )


def complete(data: bytes, path: tuple[int, ...] = (1, 3, 4)) -> int:
    """How many events stand in the data from their first to their last byte, around whatever is cut."""
    found = at = 0
    while at < len(data):
        try:
            key, at = varint(data, at)
            size, begin = varint(data, at)
        except IndexError:
            break
        if key & 7 != 2:
            at = begin if key & 7 == 0 else at + (8 if key & 7 == 1 else 4)
            continue
        at = begin + size
        if key >> 3 == path[0]:
            found += at <= len(data) if len(path) == 1 else complete(data[begin:at], path[1:])
    return found


def is_between_planes(size: int) -> bool:
    """Whether a file of so many bytes may as well be whole."""
    at = 0
    while at < size:
        _, at = varint(WHOLE, at)
        length, at = varint(WHOLE, at)
        at += length
    return at == size


@pytest.mark.usefixtures("_build")
def test_cut_anywhere(request: pytest.FixtureRequest) -> None:
    step = (11 if SOAKS else 31) if "compiled" in request.node.name else (29 if SOAKS else 89)
    for size in range(1, len(WHOLE), step):
        trace = read_events(WHOLE[:size])
        count = 0 if trace is None else len(own_events(trace))
        assert count == complete(WHOLE[:size]), size
        if trace is not None:
            told = trace.problems.filter(code="truncated")["detail"].to_list()
            detail = f"It ends at byte {size:,}, in the middle of a message, after {count} complete events. Whole threads may be missing: no speed-up is promised."
            assert told == ([] if is_between_planes(size) else [detail])
            assert "no-device-events" not in codes(trace) or is_between_planes(size)


@pytest.mark.parametrize("rest", [1, 2])
def test_cut_in_the_head_of_a_plane(tmp_path: Path, rest: int) -> None:
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 0, 500)])
    data = space(plane) + packed(1, bytes(300))[:rest]
    trace = load(data, tmp_path)
    (problem,) = trace.problems.to_dicts()
    assert (problem["code"], problem["title"]) == ("truncated", "The file is truncated")
    assert problem["detail"] == (
        f"It ends at byte {len(data)}, in the middle of a message, after 1 complete events. "
        "Whole threads may be missing: no speed-up is promised."
    )


def test_the_count_of_complete_events() -> None:
    assert complete(WHOLE) == 22


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_packed_file_that_is_cut(tmp_path: Path, share: float) -> None:
    whole = gzip.compress(WHOLE)
    data = whole[: int(share * len(whole))]
    unpacked = zlib.decompressobj(wbits=31).decompress(data)
    trace = load(data, tmp_path)
    assert complete(unpacked) - 3 <= len(own_events(trace)) <= complete(unpacked)
    assert {"truncated", "damaged-gzip"} <= codes(trace).keys()
    (detail,) = trace.problems.filter(code="damaged-gzip")["detail"]
    assert detail.startswith(f"The gzip stream ends too early, after {len(data):,} packed bytes. ")


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 0, 500)])
    broken = packed(1, packed(2, "/host:CPU") + packed(3, plane.lines[0]) + b"\x0f\xff\xff")
    trace = load(broken + space(plane), tmp_path)
    assert len(trace.events) == 2
    (problem,) = trace.problems.to_dicts()
    assert (problem["code"], problem["count"]) == ("damaged", 3)
    assert f"From byte {len(broken) - 3}" in problem["detail"]


def test_a_part_that_claims_too_much_is_clipped(tmp_path: Path) -> None:
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 0, 500)])
    line = b"\x1a\x7f" + plane.lines[0]
    trace = load(packed(1, packed(2, "/host:CPU") + line) + space(plane), tmp_path)
    assert len(trace.events) == 2
    assert codes(trace) == {"damaged": 1}


def test_events_that_break_off(tmp_path: Path) -> None:
    events = packed(4, number(1, 1) + b"\x10" + b"\xff" * 11) + packed(4, number(1, 1) + number(77, 1))
    trace = load(packed(1, packed(2, "/host:CPU") + packed(3, events)), tmp_path)
    assert len(trace.events) == 2
    assert codes(trace) == {"damaged-events": 1, "unknown-fields": 1}


@pytest.mark.parametrize("more", [1, 2, 10])
def test_over_long_varints_in_an_event(tmp_path: Path, more: int) -> None:
    long = packed(4, number(1, 1) + b"\x10" + b"\xff" * (9 + more) + b"\x01")
    trace = load(packed(1, packed(2, "/host:CPU") + packed(3, long + packed(4, number(1, 1)))), tmp_path)
    assert len(trace.events) == 2
    (problem,) = trace.problems.to_dicts()
    assert (problem["code"], problem["severity"]) == ("damaged-events", "warning")
    assert problem["detail"] == "1 events or stats end early; their first part was kept."


@pytest.mark.parametrize(
    "bomb",
    [b"\xff" * 11, b"\x0a" + b"\xff" * 11, b"\x0b" * 200_000, b"\x0b\x13" * 100_000],
    ids=["tag", "length", "groups", "groups of groups"],
)
@pytest.mark.parametrize("inside", [False, True], ids=["file", "plane"])
def test_over_long_varints_and_nesting_bombs(tmp_path: Path, bomb: bytes, inside: bool) -> None:
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 0, 500)])
    data = space(plane) + (packed(1, packed(2, "/host:CPU") + bomb) if inside else bomb)
    trace = load(data, tmp_path)
    assert trace.events["name"].to_list() == ["x"]
    (problem,) = trace.problems.to_dicts()
    assert (problem["code"], problem["severity"], problem["count"]) == ("damaged", "error", len(bomb))
    assert problem["detail"] == (
        f"From byte {len(data) - len(bomb):,} on, {len(bomb):,} bytes in 1 places are not valid protobuf and were skipped."
    )


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "\x1b[31mred\x07", "\u202eright to left", "\0", 'say "hi"\n']
)
def test_hostile_names_stay_names(tmp_path: Path, name: str) -> None:
    plane = PlaneBytes("/host:CPU")
    stats: dict[str, Any] = {name: name}
    plane.line(name, [plane.event(name, 0, 500, **stats)])
    trace = load(space(plane), tmp_path)
    assert trace.events["name"].to_list() == [name]
    assert trace.arguments(0) == {name: name}
    assert codes(trace) == {}


def test_broken_text_is_shown(tmp_path: Path) -> None:
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("caf##", 0, 500)])
    trace = load(space(plane).replace(b"caf##", b"caf\xff\xfe"), tmp_path)
    assert trace.events["name"].to_list() == ["caf\ufffd\ufffd"]


def test_fields_of_a_later_format(tmp_path: Path) -> None:
    line = packed(3, packed(2, "t") + number(77, 1) + packed(4, number(1, 1)) + packed(3, "no time"))
    plane = packed(1, packed(2, "/host:CPU") + line + number(2, 5)) + packed(9, "new")
    trace = load(plane, tmp_path)
    assert len(trace.events) == 1
    assert codes(trace) == {"unknown-fields": 4}


def test_events_around_a_group(tmp_path: Path) -> None:
    event, group = packed(4, number(1, 1) + number(3, 2_000)), b"\x1b\x08\x05\x1c"
    trace = load(packed(1, packed(2, "/host:CPU") + packed(3, event + group + event * 2)), tmp_path)
    assert trace.events["dur_ns"].to_list() == [2, 2, 2]
    assert codes(trace) == {"unknown-fields": 1}


def test_the_same_from_several_threads(tmp_path: Path) -> None:
    plane = PlaneBytes("/host:CPU")
    for line in range(3):
        stats: list[dict[str, Any]] = [
            {f"s{i % 5}": i, "text": f"t{i % 3}", "f": i / 2, "_p": i, "r": Ref("said")} for i in range(40)
        ]
        plane.line(
            "t", [plane.event(f"e{i % 7}", i * 1_000, 500, **stat) for i, stat in enumerate(stats)], line
        )
    whole = load(space(plane), tmp_path)
    with (
        mock.patch.object(index, "CHUNK_BYTES", 100),
        mock.patch.multiple(xplane_decode, _PART_BYTES=100, _LEAST_ROOM=1, _processors=lambda: 4),
    ):
        parts = load(space(plane), tmp_path)
    assert whole.events.equals(parts.events)
    assert [whole.arguments(i) for i in range(120)] == [parts.arguments(i) for i in range(120)]


def test_times_beyond_reason(tmp_path: Path) -> None:
    plane = PlaneBytes("/host:CPU")
    plane.line(
        "t", [plane.event("x", 1 << 62, 1 << 62), plane.event("y", -(1 << 63), -5)], time_ns=-(1 << 63)
    )
    trace = load(space(plane), tmp_path)
    assert codes(trace)["bad-time"] == 2
    assert trace.events["dur_ns"].min() == 0


@FEWER
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes(flips: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for at, value in flips:
        data[at] = value
    trace = read_events(bytes(data))
    assert trace is None or len(own_events(trace)) <= 30


@FEWER
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 7))
@example(0, 4)  # a plane becomes a warning
@example(16, 3)  # a line becomes the name of its plane
def test_no_bit_loses_an_event_in_silence(at: int, bit: int) -> None:
    data = bytearray(WHOLE)
    data[at] ^= 1 << bit
    trace = read_events(bytes(data))
    if trace is not None and len(own_events(trace)) < 22:
        assert trace.problems["title"].to_list() != ["The profiler reported a warning: late"]


def test_what_stands_there_twice_is_counted(tmp_path: Path) -> None:
    line = packed(3, packed(2, "t") + number(3, 5) + packed(4, number(1, 1)) + packed(2, "t again"))
    plane = packed(1, packed(2, "/host:CPU") + line + packed(2, "/host:CPU"))
    assert codes(load(plane, tmp_path)) == {"unknown-fields": 2}


@FEWER
@given(st.integers(1, len(WHOLE)), st.binary(max_size=40))
def test_cut_and_followed_by_anything(size: int, rest: bytes) -> None:
    read_events(WHOLE[:size] + rest)


@FEWER
@given(st.binary(max_size=300).map(lambda data: b"\x0a" + data))
def test_any_bytes(data: bytes) -> None:
    read_events(data)


NAMES = st.text(st.characters(codec="utf-8"), max_size=6)
STATS = st.dictionaries(
    st.sampled_from(["step_num", "_r", "_p", "_c", "_pt", "_ct", "correlation_id", "device_id", "tf_op", "hlo_op", "hlo_module",
                     "kernel_details", "memcpy_details", "allocator_name", "addr", "cuda_graph_node_id", "counter_value"]),
    st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(), NAMES, st.binary(max_size=4)),
    max_size=4,
)  # fmt: skip
PLANES = st.sampled_from(
    ["/host:CPU", "/device:GPU:0", "/device:TPU:1", "/host:metadata", "Task Environment", "x"]
)
LINES = st.sampled_from(
    ["python", "Stream #1(Compute)", "Steps", "XLA Modules", "XLA Ops", "Async XLA Ops", "_counters_"]
)
EVENT = st.tuples(
    NAMES,
    st.integers(-(1 << 40), 1 << 40),
    st.integers(-10, 1 << 40),
    st.one_of(st.none(), st.integers(0, 5)),
    STATS,
)
MADE_UP = st.lists(
    st.tuples(
        PLANES, st.lists(st.tuples(LINES, st.integers(-5, 1 << 61), st.lists(EVENT, max_size=4)), max_size=3)
    ),
    min_size=1,
    max_size=3,
)


@FEWER
@given(MADE_UP)
def test_made_up_files_keep_every_event(
    planes: list[tuple[str, list[tuple[str, int, list[tuple[str, int, int, int | None, dict[str, Any]]]]]]],
) -> None:
    built, count = [], 0
    for name, lines in planes:
        plane = PlaneBytes(name)
        for line, time, events in lines:
            plane.line(
                line,
                [plane.event(n, at, dur, times=times, **stats) for n, at, dur, times, stats in events],
                time_ns=time,
            )
            count += len(events)
        plane.fact("process_id", 1)
        built.append(plane)
    data = space(*built)
    trace = read_events(data)
    assert trace is not None
    assert len(own_events(trace)) == count
    naive = {plane.name: 0 for plane in decode(data).planes}
    for plane_found in decode(data).planes:
        naive[plane_found.name] += sum(len(line.events) for line in plane_found.lines)
    found = dict(own_events(trace).group_by("source_category").len().rows())
    assert found == {name: number_of for name, number_of in naive.items() if number_of}
