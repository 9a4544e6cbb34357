"""Traces as files: what comes back is what went in, or damage is noticed."""

from __future__ import annotations

import mmap
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.profiles.cache import stored
from stepscope.profiles.cache.mapped import Damaged, mapped
from stepscope.profiles.cache.stored import StoredTrace, lazily, write
from stepscope.trace.schema import TABLES, Text
from stepscope.trace.trace import Trace
from tests.builders import traces

PLAIN = {"a": pl.UInt32, "b": pl.Int64, "c": pl.Float64, "d": pl.UInt8}


def never() -> Trace:
    raise AssertionError("read again")


def check_same(found: Trace, expected: Trace) -> None:
    for name in TABLES:
        assert found.tables[name].schema == expected.tables[name].schema, name
        assert found.tables[name].equals(expected.tables[name]), name
    assert list(found.cold) == list(expected.cold)
    for name, frame in expected.cold.items():
        assert found.cold[name].equals(frame), name


@pytest.mark.parametrize("few", [0, 1_000_000])
def test_a_trace_comes_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(stored, "FEW_NAMES", few)
    trace = traces.trace()
    kept = lazily(StoredTrace(tmp_path, write(trace, tmp_path)), "/somewhere/rank0.pt.trace.json", never)
    check_same(kept, trace)


def test_a_trace_without_events(tmp_path: Path) -> None:
    kept = lazily(StoredTrace(tmp_path, write(Trace({}), tmp_path)), "", never)
    check_same(kept, Trace({}))


def test_only_the_names_in_use_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = pl.Series([f"elsewhere {i}" for i in range(100)], dtype=Text)
    monkeypatch.setattr(stored, "FEW_NAMES", 10)
    write(traces.trace(), tmp_path)
    names = pl.read_ipc(tmp_path / "strings.arrow")["strings"]
    assert len(others) == 100
    assert "aten::mm" in names
    assert not names.str.starts_with("elsewhere").any()


def test_tables_are_mapped_not_copied(tmp_path: Path) -> None:
    rows = 300_000
    frame = pl.DataFrame({"id": range(rows), "track": [0] * rows, "name": ["x"] * rows})
    trace = Trace(
        {"events": frame.with_columns(start_ns=pl.col("id"), dur_ns=pl.col("id"), kind=pl.lit("op"))}
    )
    kept = StoredTrace(tmp_path, write(trace, tmp_path)).table("events")
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux tells what is mapped")
    assert str(tmp_path / "events.arrow") in maps.read_text()
    assert kept.n_chunks() == 1
    del kept
    assert str(tmp_path / "events.arrow") not in maps.read_text()


def test_a_mapped_table_outlives_its_file(tmp_path: Path) -> None:
    trace = traces.trace()
    kept = StoredTrace(tmp_path, write(trace, tmp_path)).table("events")
    (tmp_path / "events.arrow").unlink()
    assert kept.equals(trace.events)
    assert kept.sort("dur_ns")["dur_ns"].is_sorted()


@pytest.mark.parametrize("table", ["events", "kernels", "strings", "traces"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "empty"])
def test_damage_found_late_means_reading_again(tmp_path: Path, table: str, damage: str) -> None:
    trace = traces.trace()
    kept = lazily(StoredTrace(tmp_path, write(trace, tmp_path)), trace.info.path, traces.trace)
    harm(tmp_path / f"{table}.arrow", damage)
    check_same(kept, trace)


def test_damage_of_a_cold_frame(tmp_path: Path) -> None:
    trace = traces.trace()
    kept = lazily(StoredTrace(tmp_path, write(trace, tmp_path)), trace.info.path, traces.trace)
    harm(tmp_path / "cold0.arrow", "flip")
    check_same(kept, trace)


def harm(file: Path, damage: str) -> None:
    """New files take the places of the old ones: damage in place is what nobody can survive who mapped them."""
    data = bytearray(file.read_bytes())
    file.unlink()
    if damage == "flip":
        data[len(data) // 2] ^= 0x10
    elif damage == "cut":
        del data[-9:]
    elif damage == "empty":
        data.clear()
    if damage != "gone":
        file.write_bytes(data)


def test_sizes_are_checked_at_once(tmp_path: Path) -> None:
    contents = write(traces.trace(), tmp_path)
    StoredTrace(tmp_path, contents).check_sizes()
    harm(tmp_path / "ops.arrow", "cut")
    with pytest.raises(Damaged, match=r"ops\.arrow has"):
        StoredTrace(tmp_path, contents).check_sizes()


def test_files_outside_the_folder_are_refused(tmp_path: Path) -> None:
    contents = write(traces.trace(), tmp_path)
    outside = stored.StoredFile("../x", 3, 0)
    (tmp_path.parent / "x").write_bytes(b"abc")
    with pytest.raises(Damaged):
        StoredTrace(tmp_path, stored.Contents({**contents.tables, "ops": outside}, {})).check_sizes()


def open_map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def plain_frame(rows: int) -> pl.DataFrame:
    numbers = pl.int_range(rows, eager=True)
    return pl.DataFrame(
        {
            "a": numbers.cast(pl.UInt32),
            "b": pl.select(pl.when(numbers % 3 == 1).then(None).otherwise(numbers)).to_series(),
            "c": numbers / 7,
            "d": pl.Series([None] * rows, dtype=pl.UInt8),
        }
    )


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("batch", [1, 64, 5000])
def test_mapped_columns(tmp_path: Path, rows: int, batch: int) -> None:
    frame = plain_frame(rows)
    frame.write_ipc(tmp_path / "x", compression="uncompressed", record_batch_size=batch)
    found = mapped(open_map(tmp_path / "x"), PLAIN)
    assert found.schema == frame.schema
    assert found.equals(frame)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    plain_frame(100).write_ipc(tmp_path / "x")
    with pytest.raises(Damaged):
        mapped(open_map(tmp_path / "x"), {"a": pl.UInt32})
    with pytest.raises(Damaged):
        mapped(open_map(tmp_path / "x"), {**PLAIN, "a": pl.Int64, "d": pl.Int64})


def test_packed_files_are_refused(tmp_path: Path) -> None:
    plain_frame(5000).write_ipc(tmp_path / "x", compression="lz4")
    with pytest.raises(Damaged):
        mapped(open_map(tmp_path / "x"), PLAIN)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.floats(0.1, 1),
)
def test_no_damage_breaks_the_process(tmp_path: Path, places: list[tuple[float, int]], cut: float) -> None:
    plain_frame(20).write_ipc(tmp_path / "x", compression="uncompressed")
    data = bytearray((tmp_path / "x").read_bytes())
    for place, value in places:
        data[int(place * (len(data) - 1))] = value
    (tmp_path / "y").write_bytes(data[: max(1, int(cut * len(data)))])
    try:
        found = mapped(open_map(tmp_path / "y"), PLAIN)
    except Damaged:
        return
    assert dict(found.schema) == PLAIN
    found.sum()
