"""The Chrome export: Perfetto can draw all of it, and our own reader gets the same tables back."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.errors import StepscopeError
from stepscope.formats import read
from stepscope.formats.own_export import write
from stepscope.formats.own_export.lanes import NESTED_LANES, lanes
from stepscope.formats.own_export.write import chrome_text
from stepscope.formats.source import Source
from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import Trace, TraceInfo
from tests.builders import documents
from tests.builders.recordings import recordings
from tests.builders.traces import trace
from tests.formats.bad_input.test_generated import events, headers
from tests.formats.ways import examples
from tests.sample import spread

pytestmark = pytest.mark.thorough


def exported(found: Trace, folder: Path, name: str = "export.json") -> Path:
    """The trace in a file."""
    path = folder / name
    path.write_text("".join(chrome_text(found)), "utf-8")
    return path


def check_same(before: Trace, after: Trace) -> None:
    """All tables are equal row by row, as they stand; only where the file lies does not count."""
    for table in TABLES:
        mine, theirs = (found.tables[table].drop("path", strict=False) for found in (before, after))
        assert mine.schema == theirs.schema
        assert_frame_equal(mine, theirs, check_exact=True)


def spans(*rows: tuple[int, int, int]) -> Trace:
    """A trace of spans: track, start, duration."""
    events = pl.DataFrame(
        [(track, f"e{i}", "span", "x", start, dur) for i, (track, start, dur) in enumerate(rows)],
        schema={"track": pl.UInt32, "name": pl.String, "kind": pl.String, "source_category": pl.String, "start_ns": pl.Int64, "dur_ns": pl.Int64},
        orient="row",
    )  # fmt: skip
    tracks = pl.DataFrame({"id": range(4), "thread": [f"t{i}" for i in range(4)], "what": ["host"] * 4})
    return finish(Draft(TraceInfo(format="x"), events, tracks))


def check_arguments(before: Trace, after: Trace) -> None:
    """What was told of some of the events."""
    for event in random.Random(0).sample(range(len(before.events)), min(50, len(before.events))):
        assert before.arguments(event) == after.arguments(event)


def dropped_by_perfetto(document: dict[str, Any]) -> list[str]:
    """The slices that begin inside another one of their thread and end after it."""
    threads = defaultdict(list)
    for place, event in enumerate(document["traceEvents"]):
        if event["ph"] == "X":
            start, dur = Decimal(str(event["ts"])), Decimal(str(event["dur"]))
            threads[event["pid"], event["tid"]].append((start, place, start + dur, event["name"]))
    dropped = []
    for slices in threads.values():
        stack: list[Decimal] = []
        for start, _, end, name in sorted(slices):
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and stack[-1] < end:
                dropped.append(name)
            stack.append(end)
    return dropped


def test_all_tables_come_back(tmp_path: Path) -> None:
    before = trace()
    check_same(before, read(Source(str(exported(before, tmp_path)))))


def test_other_arguments_come_back(tmp_path: Path) -> None:
    before = trace()
    after = read(Source(str(exported(before, tmp_path))))
    for event in range(len(before.events)):
        # Ours is the argument of that name, so another one makes room.
        expected = {
            f"{name} " if name == "stepscope" else name: value
            for name, value in before.arguments(event).items()
        }
        assert expected == after.arguments(event)
    assert after.arguments(3) == {'hlo "op"': "copy.1\n", "stepscope ": "mine"}
    assert after.arguments(1)["Call stack"] == 'a.py(1): f\n"x"'


def test_the_export_of_an_export_is_the_same(tmp_path: Path) -> None:
    first = exported(trace(), tmp_path)
    again = exported(read(Source(str(first))), tmp_path, "again.json")
    assert (
        again.read_text().replace("again.json", "export.json").split("\n", 1)[1]
        == first.read_text().split("\n", 1)[1]
    )


def test_what_perfetto_sees() -> None:
    document = json.loads("".join(chrome_text(trace())))
    assert document["displayTimeUnit"] == "ns"
    assert document["baseTimeNanoseconds"] == 1_700_000_000_000_001_000
    events = document["traceEvents"]
    named = {event["args"]["name"] for event in events if event["ph"] == "M" and "name" in event["args"]}
    assert named >= {"python (77)", "GPU 0", "thread 1 (main)", "stream 7", "stream 7 (overlap 1)", "power"}
    mm = next(event for event in events if event["name"] == "aten::mm")
    assert (mm["ts"], mm["dur"], mm["cat"]) == (0.5, 2.001, "cpu_op")
    assert mm["args"]["stepscope"]["ops"] == {"shapes": "[[2, 3], [3, 4]]", "sequence": 12}
    memory = next(event for event in events if event["name"] == "[memory]")
    assert memory["ph"] == "i"
    assert memory["args"]["stepscope"]["memory"]["address"] == 2**63 + 11
    power = [event["args"]["value"] for event in events if event["ph"] == "C"]
    assert power == [0.1, 300.25]


def test_arrows_bind_to_their_events() -> None:
    """A flow event follows its slice at once and at the same time, so nothing else can take it."""
    events = json.loads("".join(chrome_text(trace())))["traceEvents"]
    ends: dict[int, dict[str, str]] = defaultdict(dict)
    for before, event in pairwise(events):
        if event["ph"] in "sf":
            assert (before["pid"], before["tid"], before["ts"]) == (event["pid"], event["tid"], event["ts"])
            ends[event["id"]][event["ph"]] = before["name"]
    assert [end["s"] for end in ends.values()] == ["cudaLaunchKernel"] * 2
    assert sorted(end["f"][:4] for end in ends.values()) == ["gemm", "nccl"]


def test_times_are_exact_to_the_nanosecond() -> None:
    before = spans((0, 7_000_000_000_000_000_001, 999), (0, 7_000_000_000_000_001_000, 1))
    text = "".join(chrome_text(before))
    assert re.findall(r'"ts":([\d.]+),"args":{"stepscope"', text) == ["0.000", "0.999"]
    assert re.findall(r'"dur":([\d.]+)', text) == ["0.999", "0.001"]


def test_overlaps_are_moved_aside_and_back(tmp_path: Path) -> None:
    before = spans((0, 0, 100), (0, 50, 100), (0, 60, 30), (0, 120, 10))
    path = exported(before, tmp_path)
    document = json.loads(path.read_text())
    assert lanes(before.events).to_list() == [0, 1, 0, 0]
    assert dropped_by_perfetto(document) == []
    assert [thread[1:] for thread in document["stepscope"]["threads"]][:2] == [[0, 0], [0, 1]]
    check_same(before, read(Source(str(path))))


def test_very_many_overlaps_take_bounded_work(tmp_path: Path) -> None:
    before = spans(*((1, i, 10_000 + i) for i in range(500)))
    document = json.loads("".join(chrome_text(before)))
    assert lanes(before.events).n_unique() == 500 > NESTED_LANES
    assert dropped_by_perfetto(document) == []


SPANS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 40)), min_size=1, max_size=40
)


@given(SPANS)
def test_any_overlaps(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]) -> None:
    before = spans(*rows)
    path = exported(before, tmp_path_factory.getbasetemp())
    assert dropped_by_perfetto(json.loads(path.read_text())) == []
    check_same(before, read(Source(str(path))))


@given(st.text(), st.text())
def test_any_name(tmp_path_factory: pytest.TempPathFactory, name: str, category: str) -> None:
    name, category = (text.encode(errors="replace").decode() for text in (name, category))
    events = pl.DataFrame(
        {
            "track": [0],
            "name": [name],
            "kind": ["span"],
            "source_category": [category],
            "start_ns": [5],
            "dur_ns": [1],
        }
    )
    before = finish(Draft(TraceInfo(), events.with_columns(pl.col("track").cast(pl.UInt32)), pl.DataFrame({"id": [0], "thread": [name], "process": [category]})))  # fmt: skip
    check_same(before, read(Source(str(exported(before, tmp_path_factory.getbasetemp())))))


@examples(15)
@given(headers, st.lists(events(), min_size=1, max_size=8))
def test_whatever_was_read_comes_back(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], found: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "generated.json"
    path.write_text(json.dumps(header | {"traceEvents": found}), "utf-8")
    try:
        before = read(Source(str(path)))
    except StepscopeError:
        return
    after = read(Source(str(exported(before, path.parent))))
    check_same(before, after)
    for event in range(len(before.events)):
        assert before.arguments(event) == after.arguments(event)


def test_a_trace_without_events(tmp_path: Path) -> None:
    empty = spans((0, 1, 1))
    nothing = Trace(
        {name: frame.clear() if name != "traces" else frame for name, frame in empty.tables.items()}
    )
    assert json.loads("".join(chrome_text(nothing)))["traceEvents"] == []


def test_chunks_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trace()
    whole = "".join(chrome_text(before))
    monkeypatch.setattr(write, "EVENTS_PER_CHUNK", 2)
    assert "".join(chrome_text(before)) == whole


def test_problems_keep_their_order(tmp_path: Path) -> None:
    """One of them is found again while the export is read, and an export never has the other."""
    path = tmp_path / "found.json"
    arrow = [
        {"ph": ph, "id": 3, "ts": ts, "pid": 1, "tid": 1, "name": "x"} for ph, ts in (("s", 2), ("f", 99))
    ]
    path.write_bytes(
        documents.chrome(documents.event(None, "a", 0, 10), documents.event(None, "b", 5, 10), *arrow)
    )
    before = read(Source(str(path)))
    assert before.problems["code"].to_list() == ["outlives-parent", "loose-flows"]
    check_same(before, read(Source(str(exported(before, tmp_path)))))


def test_counters_are_exact(tmp_path: Path) -> None:
    values = [
        0.1,
        0.30000000000000004,
        -2.4029595121150887e-142,
        1.7976931348623157e308,
        5e-324,
        123456789.12345679,
    ]
    path = tmp_path / "found.json"
    path.write_bytes(
        documents.chrome(*({"ph": "C", "name": "c", "ts": i, "args": {"v": v}} for i, v in enumerate(values)))
    )
    before = read(Source(str(path)))
    assert before.counters["value"].to_list() == values
    check_same(before, read(Source(str(exported(before, tmp_path)))))


def test_several_rows_of_one_event_and_rows_of_none(tmp_path: Path) -> None:
    before = trace()
    memory = pl.concat([before.memory, before.memory.with_columns(bytes=pl.lit(7, pl.Int64))])
    loose = before.memory.with_columns(
        event=pl.lit(None, pl.UInt32)
    )  # comes first at its time, as in any trace
    before = Trace({**before.tables, "memory": pl.concat([loose, memory])}, before.cold)
    check_same(before, read(Source(str(exported(before, tmp_path)))))


def test_a_cut_export_keeps_its_complete_events(tmp_path: Path) -> None:
    path = exported(trace(), tmp_path)
    text = path.read_bytes()
    path.write_bytes(text[: text.index(b'"Memcpy')])
    after = read(Source(str(path)))
    assert after.events["name"].to_list() == [
        name for name in trace().events["name"] if name[:3] not in ("Mem", "say")
    ]
    assert "truncated" in after.problems["code"].to_list()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"form":1', '"form":2'),
        ('"shift_ns":1000', '"shift_ns":"x"'),
        ('"shift_ns":1000', '"shift_ns":99999999999999999999'),
        ('"tracks":[{"id":0', '"tracks":[{"id":4000000000'),
        ('"threads":[[3,0,0]', '"threads":[[3,77,0]'),
        ('"rank":0', '"rank":99999999999'),
        ('"severity":"error"', '"severity":"fatal"'),
    ],
)
def test_a_damaged_header_makes_it_a_trace_like_any_other(tmp_path: Path, old: str, new: str) -> None:
    path = exported(trace(), tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    after = read(Source(str(path)))
    assert len(after.events) >= len(trace().events)
    assert after.info.format in ("kineto", "chrome")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind":"kernel"', '"kind":"nonsense"'),
        ('"kind":"kernel"', '"kind":5'),
        ('"id":7,', '"id":-7,'),
        ('"id":7,', '"id":3,'),
        ('"id":7,', ""),
        ('"grid":[132,1,1]', '"grid":[132,1]'),
        ('"grid":[132,1,1]', '"grid":{}'),
        ('"kernels":{', '"kernels":[5,{'),
        ('"registers"', '"nothing"'),
        ('"op":1', '"op":99'),
        ('"id":8589934599', '"id":858993459900000'),
        ('"id":8589934599', '"id":"x"'),
        ('"tid":4,', '"tid":4444,'),
        ('"tid":4,', '"tid":"elsewhere",'),
        ('"hlo":"AP9obG8="', '"hlo":"%%%"'),
        ('"modules":[{', '"modules":[5,{'),
        ('"value":0.1', '"value":"many"'),
    ],
)
def test_an_edited_event_is_no_error(tmp_path: Path, old: str, new: str) -> None:
    path = exported(trace(), tmp_path)
    path.write_text(path.read_text().replace(old, new, 1))
    after = read(Source(str(path)))
    assert len(after.events) >= len(trace().events) - 1
    "".join(chrome_text(after))


def test_edited_rows_are_counted(tmp_path: Path) -> None:
    path = exported(trace(), tmp_path)
    path.write_text(path.read_text().replace('"registers"', '"x"').replace('"grid":[132,1,1]', '"grid":{}'))
    told = read(Source(str(path))).problems.filter(code="edited-export")
    assert told["count"].to_list() == [1]


@given(seed=st.integers(0, 2**32))
def test_flipped_bytes(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path = exported(trace(), tmp_path_factory.getbasetemp(), "flipped.json")
    data, dice = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(dice.randint(1, 30)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(data)
    try:
        "".join(chrome_text(read(Source(str(path)))))
    except StepscopeError:
        pass


PROFILES = recordings("*.trace.json", "*.trace.json.gz", "*.xplane.pb", "*tfevents*")


@pytest.mark.parametrize("path", spread(PROFILES, 16), ids=lambda path: "/".join(path.parts[-2:]))
def test_real_profiles_come_back(path: Path, tmp_path: Path) -> None:
    """Those of the corpus do, too: see tests/corpus/test_export.py."""
    try:
        before = read(Source(str(path)))
    except StepscopeError as error:
        assert "is a TensorBoard event file" in error.what  # of nothing but summaries and graphs
        pytest.skip("no profile")
    exported_to = exported(before, tmp_path)
    assert dropped_by_perfetto(json.loads(exported_to.read_text())) == []
    after = read(Source(str(exported_to)))
    check_same(before, after)
    check_arguments(before, after)
