"""Rings whose bytes are wrong: one clear error or a trace with fewer events, never anything else."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture.process.troubles import Troubles
from stepscope.capture.ring.ring import open_ring
from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.profiles.profile import Profile
from stepscope.ring_layout import (
    ANNOTATION,
    AREA,
    EVENTS_AT,
    FACTS,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    NAMES,
    STEPS,
    WORD_BYTES,
)

TRIES = 150


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A ring of 24 annotations in three steps."""
    kept = open_ring(tmp_path_factory.mktemp("ring"), "h_1", Troubles(), 64)
    assert kept is not None
    kept.open_window(0, backend="torch", window=0, start_unix_ns=1, rank=0, world_size=2, host="h", at_ns=1)
    for step in range(3):
        for number in range(8):
            code = kept.begin(ANNOTATION, f"part {number}", 1000 * step + 10 * number + 2)
            kept.end(code, 1000 * step + 10 * number + 9)
        kept.moments[step] = 1000 * step + 900
    kept.look({"unix_ns": 1_790_000_000_000_000_000})
    kept.keep()
    return kept.path.read_bytes()


def read(folder: Path, data: bytes) -> Profile:
    path = folder / "h_1.stepscope.ring"
    path.write_bytes(data)
    return stepscope.load(path, cache=False)


def test_the_good_one(tmp_path: Path, good: bytes) -> None:
    trace = read(tmp_path, good).traces[0]
    assert len(trace.events) == 28, "24 annotations, three steps, and one that never ended"
    assert (trace.info.rank, trace.info.world_size, trace.info.framework) == (0, 2, "pytorch")


@pytest.mark.parametrize("length", [0, 3, 8, HEADER.size, HEADER.size + 20])
def test_cut_in_its_header(tmp_path: Path, good: bytes, length: int) -> None:
    with pytest.raises(StepscopeError):
        read(tmp_path, good[:length])


@pytest.mark.parametrize(
    "length",
    [
        HEADER_BYTES,
        FACTS.offset + 7,
        NAMES.offset,
        NAMES.offset + 100,
        STEPS.offset + 4,
        EVENTS_AT,
        EVENTS_AT + 100,
    ],
)
def test_cut_anywhere_else(tmp_path: Path, good: bytes, length: int) -> None:
    """What comes before is read."""
    trace = read(tmp_path, good[:length]).traces[0]
    assert len(trace.events) <= 10
    assert "capture-killed" in trace.problems["code"].to_list()


def test_another_version(tmp_path: Path, good: bytes) -> None:
    with pytest.raises(UnreadableFile, match="version 7"):
        read(tmp_path, MAGIC + struct.pack("<I", 7) + good[12:])


@pytest.mark.parametrize("area", range(5))
@pytest.mark.parametrize(
    ("offset", "slot", "slots"),
    [
        (2**63, 48, 10),
        (0, 48, 2**32 - 1),
        (4096, 0, 10),
        (4096, 1, 2**32 - 1),
        (2**40, 8, 1),
        (4096, 2**32 - 1, 2**32 - 1),
    ],
)
def test_areas_that_lie_anywhere(
    tmp_path: Path, good: bytes, area: int, offset: int, slot: int, slots: int
) -> None:
    data = bytearray(good)
    AREA.pack_into(data, HEADER.size + area * AREA.size, offset, slot, slots)
    try:
        read(tmp_path, bytes(data))
    except UnreadableFile:
        return


@pytest.mark.thorough
def test_flipped_bytes(tmp_path: Path, good: bytes) -> None:
    """Where there is anything: most of the file are holes."""
    chance = random.Random(7)
    places = [at for at, byte in enumerate(good) if byte]
    for _ in range(TRIES):
        data = bytearray(good)
        for _ in range(chance.choice((1, 3, 200))):
            data[chance.choice(places)] = chance.randrange(256)
        try:
            profile = read(tmp_path, bytes(data))
        except StepscopeError:
            continue
        assert len(profile.traces[0].events) <= 64


def test_events_of_absurd_times(tmp_path: Path, good: bytes) -> None:
    """Those that are no events at all are left out, those that only lie far away are kept."""
    data = bytearray(good)
    for slot in range(0, 48, 4):
        struct.pack_into("<q", data, EVENTS_AT + slot * WORD_BYTES, -(slot + 1))
    for slot in range(2, 48, 4):
        struct.pack_into("<q", data, EVENTS_AT + slot * WORD_BYTES, 2**63 - 1)
    assert len(read(tmp_path, bytes(data)).traces[0].events) <= 28


def test_steps_of_absurd_times(tmp_path: Path, good: bytes) -> None:
    data = bytearray(good)
    for slot, value in enumerate((2**63 - 1, -5, 2**62 - 1, 0, 1)):
        struct.pack_into("<q", data, STEPS.offset + slot * WORD_BYTES, value)
    read(tmp_path, bytes(data))


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"window": -1, "number": -(2**61), "at_ns": 2**61},
        {"window": 0, "number": 2**61, "base_ns": 2**61},
        {"window": 0, "laps": 2**31 - 1, "slots": 2**31 - 1},
        {"window": "x"},
        {"window": 2**80},
        {"gpus": [1]},
        {"host": "\ud800"},
    ],
)
def test_facts_that_make_no_sense(tmp_path: Path, facts: dict[str, Any]) -> None:
    kept = open_ring(tmp_path, "h_1", Troubles(), 64)
    assert kept is not None
    kept.open_window(5, backend="nobody")
    kept.end(kept.begin(ANNOTATION, "a", 10), 20)
    kept.moments[7] = 50
    kept.tell(**facts)
    kept.keep()
    assert len(stepscope.load(kept.path, cache=False).traces) == 1
