"""Snapshots read by their opcodes: the same columns as the worker packs, and nothing from a file that is odd, cut or hostile."""

from __future__ import annotations

import os
import pickle
import pickletools
import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from stepscope.formats.memory_snapshot import columns, opcodes
from stepscope.formats.memory_snapshot.columns import Packed
from stepscope.formats.source import Source
from tests.builders.snapshots import MIB, Job, frame, in_model, script, training
from tests.native.both import builds


@pytest.fixture(scope="module", params=builds("pickles.snapshot"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    with mock.patch.multiple(
        opcodes, **{name: getattr(request.param, name) for name in ("Machine", "Rows", "Stack", "Unusual")}
    ):
        yield request.param


def by_opcodes(path: Path) -> Packed | None:
    """The tables, or none where the file is unusual."""
    found = opcodes.read_opcodes(Source(str(path)), lambda _: None)
    return None if found is None else columns.assemble(*found)


def check_same(path: Path) -> None:
    """Both ways must give the same."""
    found, expected = by_opcodes(path), columns._ask_worker(Source(str(path)), lambda _: None)
    assert found is not None
    assert sorted(found.tables) == sorted(expected.tables)
    for name, rows in expected.tables.items():
        assert found.table(name).select(rows.columns).equals(rows), name
    for name in ("settings", "damaged"):
        assert found.header[name] == expected.header[name]


def write(value: Any, folder: Path, protocol: int = 4) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


def busy() -> dict[str, Any]:
    """Failures, annotations, settings, several devices, deep stacks, lists of frames that events and blocks share."""
    job = training(6, leak=True)
    job.fail(5 * MIB, in_model(21, script(10)))
    deep = [frame(f"f{depth}", "/home/me/deep.py", depth) for depth in range(700)]
    job.take(2**40 + 7, deep)
    job.take(300, [frame("naïve", "/home/me/ü.py", 1)])
    value = job.snapshot()
    other = training(2)
    value["device_traces"] = [value["device_traces"][0], [], other.snapshot()["device_traces"][0]]
    value["external_annotations"] = [{"stage": "START", "name": "step", "device": 0, "time_us": job.time}]
    value["allocator_settings"] |= {"roundup_power2_divisions": {"1": 0}, "garbage_collection_threshold": 0.8}
    return value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_same_as_the_worker(native: Any, tmp_path: Path, protocol: int) -> None:
    check_same(write(busy(), tmp_path, protocol))


def test_more_events_than_a_pickle_writes_at_once(native: Any, tmp_path: Path) -> None:
    job = Job()
    for number in range(2600):
        address = job.take(512 * (number % 7 + 1), script(number % 50))
        if number % 3:
            job.free(address)
    check_same(write(job.snapshot(), tmp_path))


def test_segments_alone(native: Any, tmp_path: Path) -> None:
    check_same(write(training(2).snapshot()["segments"], tmp_path))


@pytest.mark.parametrize(
    "number", [0, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, 2**40, 2**62, -1, -129, -(2**33)]
)
def test_numbers(native: Any, tmp_path: Path, number: int) -> None:
    value = training(1).snapshot()
    value["device_traces"][0][0]["size"] = number
    check_same(write(value, tmp_path))


@pytest.mark.parametrize(
    "change",
    [{"addr": -1}, {"addr": 2**70}, {"size": "many"}, {"time_us": None}, {"stream": 1.5}, {"frames": 7}, {"frames": [7, {}]}, {"action": 3}],
)  # fmt: skip
def test_odd_events_are_left_to_the_worker(native: Any, tmp_path: Path, change: dict[str, Any]) -> None:
    value = training(2).snapshot()
    value["device_traces"][0][3] |= change
    assert by_opcodes(write(value, tmp_path)) is None


class Hostile:
    """Runs a command where a pickle may."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


def nested() -> Any:
    """Lists in lists, which are short in the file and endless as text."""
    found: list[Any] = ["x"]
    for _ in range(60):
        found = [found, found]
    return found


def test_hostile_values_are_left_to_the_worker(native: Any, tmp_path: Path) -> None:
    for value in (
        Hostile(),
        {"segments": [], "allocator_settings": {"a": nested()}},
        7,
        b"x" * 999,
    ):
        assert by_opcodes(write(value, tmp_path)) is None


def test_cut_anywhere(native: Any, tmp_path: Path) -> None:
    whole = pickle.dumps(training(2).snapshot())
    path = tmp_path / "snapshot.pickle"
    for end in range(1, len(whole), 97):
        path.write_bytes(whole[:end])
        assert by_opcodes(path) is None


def test_damaged_anywhere_never_raises(native: Any, tmp_path: Path) -> None:
    whole = pickle.dumps(training(2).snapshot())
    path, chance = tmp_path / "snapshot.pickle", random.Random(1)
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        by_opcodes(path)


def test_every_opcode_after_every_other(native: Any) -> None:
    """No order of opcodes may do more than end in Unusual."""
    codes = [ord(each.code) for each in pickletools.opcodes]
    for first in codes:
        for second in codes:
            with pytest.raises((native.Unusual, UnicodeDecodeError)):
                native.Machine(bytes([128, 4, first, second, 0, 0, 0, 0, first, second])).run(99)
                raise native.Unusual


@pytest.mark.parametrize("opcode", [b"]", b"}", b"(", b"]\x94", b"}\x94", b")", b"K\x01", b"]a"])
def test_what_it_takes_is_bounded_by_the_file(native: Any, opcode: bytes) -> None:
    machine = native.Machine(b"\x80\x04" + opcode * 300_000 + b".")
    with pytest.raises(native.Unusual):
        while machine.run(machine.place() + 4096):
            pass
        machine.result()
