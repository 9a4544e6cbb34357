"""Packed recordings come out as they went in, and a set is opened once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.recordings import archive
from benchmarks.recordings.archive import PACKED, open_recording, open_set, pack
from benchmarks.recordings.columns import pack_numbers, pack_texts, unpack_numbers, unpack_texts
from benchmarks.recordings.json_trace import pack_json, unpack_json
from benchmarks.recordings.xspace import XSpace, pack_xspace, unpack_xspace
from tests.builders.xspace_bytes import PlaneBytes, space

FIXTURES = Path(__file__).parents[1] / "fixtures"
JSON = FIXTURES / "kineto" / "streams.pt.trace.json.gz"
XPLANE = next((FIXTURES / "jax").rglob("*.xplane.pb"))
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text()
)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_any_numbers_come_back(values: list[int]) -> None:
    assert unpack_numbers(pack_numbers(values)) == values


@given(st.lists(st.binary(max_size=3)))
def test_any_texts_come_back(values: list[bytes]) -> None:
    assert unpack_texts(pack_texts(values)) == values


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["ts", "dur", "name", "args", "cat", "ph"]),
            VALUES | st.dictionaries(st.text(), VALUES),
        )
    )
)
def test_any_events_come_back(events: list[dict[str, object]]) -> None:
    """In their order, with their fields in their order, and each number of its kind."""
    data = msgspec.json.encode({"schemaVersion": 1, "traceEvents": events, "traceName": "x"})
    assert unpack_json(pack_json(data)) == msgspec.json.encode(msgspec.json.decode(data))


def test_real_profiles_come_back() -> None:
    data = gzip.decompress(JSON.read_bytes())
    assert json.loads(unpack_json(pack_json(data))) == json.loads(data)
    packed = msgspec.msgpack.encode(pack_xspace(XPLANE.read_bytes()))
    assert unpack_xspace(msgspec.msgpack.decode(packed, type=XSpace)) == XPLANE.read_bytes()


def test_stats_of_all_kinds_come_back() -> None:
    plane = PlaneBytes("/device:GPU:0")
    plane.line("ops", [plane.event("a", 5, 7, text="x", number=-3, real=0.5), plane.event("b", 2**40, 1)])
    data = space(plane, hosts=["one"])
    assert unpack_xspace(pack_xspace(data)) == data


def folder_of_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the set "some", still empty."""
    monkeypatch.setattr(archive, "FIXTURES", tmp_path / "fixtures")
    monkeypatch.setattr(archive, "OPENED", tmp_path / "opened")
    folder = tmp_path / "fixtures" / "some"
    folder.mkdir(parents=True)
    return folder


def test_a_set_is_opened_once_and_anew_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of_a_set(tmp_path, monkeypatch)
    (folder / "results.json").write_text("[]")
    pack([JSON], folder / PACKED)
    first = open_set("some")
    assert sorted(path.name for path in first.iterdir()) == ["results.json", JSON.name]
    assert json.loads(gzip.decompress((first / JSON.name).read_bytes())) == json.loads(
        gzip.decompress(JSON.read_bytes())
    )
    assert open_set("some") == first
    (folder / "results.json").write_text("[1]")
    assert open_set("some") != first


def test_one_recording_of_a_set_is_opened_without_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of_a_set(tmp_path, monkeypatch)
    other = folder / f"other.{JSON.name}"
    other.write_bytes(JSON.read_bytes())
    pack([JSON, other], folder / PACKED)
    found = open_recording("some", JSON.name)
    assert [path.name for path in found.parent.iterdir()] == [JSON.name]
    assert found.read_bytes() == (open_set("some") / JSON.name).read_bytes()
    assert open_recording("some", other.name) == other, "those that lie there as they are need no unpacking"
    with pytest.raises(FileNotFoundError, match="has no third"):
        open_recording("some", "third")


def test_what_would_not_come_back_is_not_packed(tmp_path: Path) -> None:
    """A varint with a byte too many is read as the same number, and written shorter."""
    odd = tmp_path / "odd.xplane.pb.gz"
    odd.write_bytes(gzip.compress(b"\x18\x81\x00"))
    with pytest.raises(ValueError, match="does not come out"):
        pack([odd], tmp_path / PACKED)
