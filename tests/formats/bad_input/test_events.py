"""Events with something wrong in them: what can be read is read, what cannot is counted, and nothing is silent."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from stepscope.problems.catalogue import CATALOGUE
from tests.builders.documents import chrome, codes, event, kineto, named, on_stream
from tests.formats.ways import Way

pytestmark = pytest.mark.thorough

GOOD = b'{"ph":"X","name":"good","cat":"cpu_op","pid":1,"tid":1,"ts":90,"dur":1}'


def raw(*events: bytes) -> bytes:
    """A document of events that json.dumps would never write, and a good one at the end."""
    return b'{"deviceProperties": [], "traceEvents": [%b]}' % b",\n".join((*events, GOOD))


def one(**values: str) -> bytes:
    """An event with these values as they stand."""
    members = {
        "ph": '"X"',
        "name": '"x"',
        "cat": '"cpu_op"',
        "pid": "1",
        "tid": "1",
        "ts": "5",
        "dur": "2",
    } | values
    return b"{%b}" % ",".join(f'"{key}":{value}' for key, value in members.items()).encode()


# --- values that are no JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["N/A", "NaN", "nan", "inf", "-inf", "Infinity", "None", "undefined"])
def test_bare_words_as_arguments(way: Way, word: str) -> None:
    args = f'{{"External id": 3, "blocks per SM": {word}, "list": [1, {word}], "Ev Idx": 4}}'
    trace = way(raw(one(cat='"kernel"', args=args)))
    assert trace.arguments(0)["external_id"] == 3
    assert trace.arguments(0)["Ev Idx"] == 4
    assert trace.arguments(0)["list"][0] == 1
    assert trace.kernels["blocks_per_sm"].to_list() == [None]
    assert len(trace.events) == 2
    assert codes(trace) == {}


@pytest.mark.parametrize("word", ["N/A", "NaN", "inf", '"soon"', "null", "[]", "{}", "true"])
def test_no_time_stamp(way: Way, word: str) -> None:
    trace = way(raw(one(ts=word)))
    assert trace.events["name"].to_list() == ["good"]
    (problem,) = trace.problems.iter_rows(named=True)
    assert (problem["code"], problem["severity"], problem["count"]) == ("untimed-events", "warning", 1)
    assert problem["detail"] == "1 events have no readable `ts`; they were left out."


@pytest.mark.parametrize("word", ["N/A", "NaN", "inf", '"long"', "null", "[]"])
def test_no_duration(way: Way, word: str) -> None:
    trace = way(raw(one(dur=word)))
    assert named(trace, "x")["dur_ns"] == 0
    assert codes(trace) == {"no-duration": 1}
    assert trace.problems["detail"][0] == (
        "1 events of phase X have no readable `dur`; they are kept with a duration of 0."
    )


@pytest.mark.parametrize("time", ["1e30", "-1e30", "99999999999999999999", "4000000000000001"])
@pytest.mark.parametrize("member", ["ts", "dur"])
def test_times_beyond_all_clocks(way: Way, member: str, time: str) -> None:
    trace = way(raw(one(**{member: time})))
    assert trace.events["name"].to_list() == ["good"]
    assert codes(trace) == {"time-out-of-range": 1}
    assert trace.problems["detail"][0] == "1 events have times beyond ±126 years; they were left out."


def test_no_phase(way: Way) -> None:
    trace = way(raw(b'{"name":"x","ts":1}', b'{"ph":null,"ts":1}'))
    assert trace.events["name"].to_list() == ["good"]
    assert codes(trace) == {"no-phase": 2}
    assert trace.problems["detail"][0] == "2 events have no `ph`; they were left out."


def test_huge_numbers_in_arguments_cost_nothing(way: Way) -> None:
    args = '{"External id": 1e999999999, "bytes": 99999999999999999999999999, "Ev Idx": -1e400, "x": 5}'
    trace = way(raw(one(args=args)))
    assert named(trace, "x")["dur_ns"] == 2_000
    assert trace.arguments(0)["x"] == 5
    assert codes(trace) == {}


@pytest.mark.parametrize(
    "value", ["-9223372036854775808", "18446744073709551615", "9223372036854775808", "-1"]
)
def test_numbers_at_the_end_of_their_range(way: Way, value: str) -> None:
    trace = way(raw(one(args=f'{{"Ev Idx": {value}}}')))
    found = trace.arguments(0)
    assert int(value) in (found.get("Ev Idx"), found.get("ev_idx"), (found.get("ev_idx") or 0) % 2**64)


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>", "a & b < c", "\x1b[31mred\x1b[0m", "tab\tand\nline", "\0 zero \x7f", "‮right to left",
        "emoji 🔥 é", 'say "hi"', "back\\slash", "{count}", "[bold]x[/bold]", " spaces ", "", "x" * 100_000,
    ],
)  # fmt: skip
def test_names_are_kept_as_they_are(way: Way, name: str) -> None:
    for ascii_only in (True, False):
        data = json.dumps({"traceEvents": [event("cpu_op", name)]}, ensure_ascii=ascii_only).encode()
        trace = way(data)
        assert trace.events["name"].to_list() == [name]
        assert codes(trace) == {}


def test_control_characters_that_should_have_been_escaped(way: Way) -> None:
    trace = way(raw(one(name='"a\tb\x01c\x1b[0m"')))
    assert trace.events["name"].to_list() == ["a\tb\x01c\x1b[0m", "good"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"caf\xe9", "caf�"),
        (b"\xff\xfe", "��"),
        (b"\xf0\x9f\x94", "�"),
        (b"a\\ud83dz", "a�z"),
        (b"\\ud83d\\ud83d\\udd25\\udd25", "�🔥�"),
        (b"\\uzzzz", "\\uzzzz"),
    ],
)
def test_broken_text_is_shown_and_counted(way: Way, name: bytes, shown: str) -> None:
    trace = way(raw(b'{"ph":"X","cat":"cpu_op","name":"%b","pid":1,"tid":1,"ts":1,"dur":1}' % name))
    assert trace.events["name"].to_list() == [shown, "good"]
    assert codes(trace) == {"broken-text": 1}
    assert trace.problems["detail"][0] == (
        "1 strings have bytes that are not UTF-8, or escapes that are not JSON; those bytes are shown as �."
    )


def test_unescaped_quotes(way: Way) -> None:
    trace = way(raw(one(name='"lambda("x")"'), one(name='"a"b"c"', ts="7")))
    assert trace.events["name"].to_list() == ['lambda("x")', 'a"b"c', "good"]
    assert codes(trace) == {"unescaped-quotes": 2}
    assert trace.problems.row(0)[1:5] == (
        "info",
        "Names have unescaped quotes",
        "2 strings have unescaped quotes; they were read as part of the text.",
        CATALOGUE["unescaped-quotes"].fix,
    )


# --- times --------------------------------------------------------------------------------------------------------


def test_negative_durations(way: Way) -> None:
    trace = way(
        kineto(event("cpu_op", "a", 10, -5), event("cpu_op", "b", 20, -0.001), event("cpu_op", "c", 30, 0))
    )
    assert trace.events.select("name", "start_ns", "dur_ns").rows() == [
        ("a", 10_000, 0),
        ("b", 20_000, 0),
        ("c", 30_000, 0),
    ]
    (problem,) = trace.problems.iter_rows(named=True)
    assert (problem["code"], problem["count"]) == ("negative-duration", 2)
    assert problem["detail"] == "2 events end before they start; they are kept with a duration of 0."
    assert problem["fix"] == "Record again with a newer profiler."


def test_time_stamps_of_zero_are_events_like_others(way: Way) -> None:
    trace = way(kineto(event("cpu_op", "a", 0, 5), event("cpu_op", "b", 0, 0)))
    assert trace.events.select("name", "depth").rows() == [("a", 0), ("b", 1)]
    assert codes(trace) == {}


def test_a_child_that_outlives_its_parent(way: Way) -> None:
    trace = way(kineto(event("cpu_op", "a", 0, 10), event("cpu_op", "b", 5, 10), event("cpu_op", "c", 6, 2)))
    rows = trace.events.select("name", "start_ns", "dur_ns", "depth", "parent").rows()
    assert rows == [("a", 0, 10_000, 0, None), ("b", 5_000, 10_000, 0, None), ("c", 6_000, 2_000, 1, 1)]
    assert codes(trace) == {"outlives-parent": 1}
    assert trace.problems["detail"][0] == (
        "1 events start inside another event of their thread and end after it."
    )


@pytest.mark.parametrize(("start", "dur"), [(5, 10), (2, 3), (0, 10), (10, 1)])
def test_kernels_that_overlap_on_one_stream_are_both_kept(way: Way, start: float, dur: float) -> None:
    trace = way(kineto(on_stream("kernel", "a", 0, 10), on_stream("kernel", "b", start, dur)))
    rows = trace.events.sort("name").select("name", "start_ns", "dur_ns", "parent", "depth").rows()
    assert rows == [("a", 0, 10_000, None, 0), ("b", start * 1000, dur * 1000, None, 0)]
    assert len(trace.kernels) == 2
    assert codes(trace).keys() <= {"zero-time"}


# --- structure ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bomb", [b"[" * 100_000, b'{"a":' * 100_000, b"[{" * 50_000], ids=["lists", "objects", "both"]
)
@pytest.mark.parametrize("where", ["args", "name", "pid", "unknown"])
def test_a_nesting_bomb_in_an_event(way: Way, where: str, bomb: bytes) -> None:
    event_with_bomb = b'{"ph":"X","ts":1,"dur":1,"%b":%b' % (where.encode(), bomb)
    trace = way(raw(one(), event_with_bomb))
    assert trace.events["name"].to_list()[0] == "x"
    assert "good" in trace.events["name"].to_list()
    assert codes(trace).keys() & {"bad-events", "truncated"}


def test_nesting_that_is_closed_again_is_only_deep(way: Way) -> None:
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    trace = way(chrome(event(None, "a", args={"deep": deep})))
    assert trace.arguments(0) == {"deep": deep}
    assert codes(trace) == {}


def test_a_nesting_bomb_instead_of_a_document(way: Way) -> None:
    with pytest.raises(Exception, match="holds no trace events: what its list holds are not events"):
        way(b"[" * 200_000)


@pytest.mark.parametrize(
    "between",
    [b"", b",", b",,", b", \n,", b"{}", b"{},", b",{}", b"{},{}"],
    ids=lambda data: data.decode() or "nothing",
)
def test_commas_and_empty_objects_are_passed_over(way: Way, between: bytes) -> None:
    trace = way(
        b'{"deviceProperties": [], "traceEvents": [%b%b%b%b]}' % (between, one(), between or b" ", GOOD)
    )
    assert trace.events["name"].to_list() == ["x", "good"]
    assert codes(trace) == {}


def test_empty_pieces_of_arguments(way: Way) -> None:
    trace = way(raw(one(args='{"Ev Idx": 3, , "x": 1, }')))
    assert trace.arguments(0)["ev_idx"] == 3
    assert codes(trace) == {}


@pytest.mark.parametrize("junk", [b"junk", b"{junk}", b'{"ph" "X"}', b"[1, 2]", b'"text"', b"7"])
def test_junk_between_events(way: Way, junk: bytes) -> None:
    data = raw(one(), junk)
    trace = way(data)
    assert trace.events["name"].to_list() == ["x", "good"]
    (problem,) = trace.problems.iter_rows(named=True)
    assert (problem["code"], problem["severity"], problem["count"]) == ("bad-events", "error", 1)
    place = data.index(junk, data.index(b'"x"'))
    assert problem["detail"].startswith(
        f"1 places in the list of events are not valid JSON, the first at byte {place:,}; "
    )
    assert problem["detail"].endswith(" bytes were skipped.")


def test_the_end_of_the_list_after_junk(way: Way) -> None:
    """What follows the events is read even if the last of them is broken."""
    data = b'{"deviceProperties": [], "traceEvents": [%b,{bad}], "distributedInfo": {"rank": 3}}' % GOOD
    trace = way(data)
    assert trace.info.rank == 3
    assert codes(trace) == {"bad-events": 1}


def test_the_same_argument_twice(way: Way) -> None:
    trace = way(raw(one(args='{"Ev Idx": 1, "Ev Idx": 2, "x": 1, "x": 2}')))
    assert trace.arguments(0) == {"ev_idx": 2, "Ev Idx": 2, "x": 2}


def test_every_event_counts_once(way: Way) -> None:
    """Kept or counted as left out: the sum is what was in the list."""
    bad = [one(ts="N/A"), one(ts="1e30"), b'{"name":"x"}', one(dur="null"), one(dur="-1"), b"{junk}"]
    trace = way(raw(*bad))
    left_out = codes(trace)
    assert len(trace.events) == 3  # good, and those with a bad duration
    assert left_out == {
        "bad-events": 1, "untimed-events": 1, "time-out-of-range": 1, "no-phase": 1, "no-duration": 1,
        "negative-duration": 1,
    }  # fmt: skip


def test_thousands_of_tracks(way: Way) -> None:
    if way.name == "interpreted":
        pytest.skip("the same code, and slow")
    trace = way(chrome(*(event(None, "x", i, 1, pid=i, tid=-i) for i in range(5_000))))
    assert len(trace.tracks) == 5_000
    assert trace.events["track"].n_unique() == 5_000
    assert trace.tracks.select(pl.col("pid").cast(pl.Int64).sum()).item() == sum(range(5_000))
