"""Which described device each used one is, and what a nameless one is."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.profiles.overview import devices_of
from stepscope.trace.devices import described_devices, renumbered_memory
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace, TraceInfo
from tests.builders.tables import draft

GIB = 2**30
MI300X = {"name": "AMD Instinct MI300X", "totalGlobalMem": 192 * GIB, "numSms": 304, "warpSize": 64}


def listed(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    """Devices alike but for their number."""
    return [{"id": number, **MI300X, **more} for number in numbers]


def test_one_listed_and_one_used_device_are_the_same() -> None:
    """ROCm counts from 0 in the header, and by the driver in events."""
    assert [device["id"] for device in described_devices(listed(0), {2})] == [2]


def test_one_of_several_alike() -> None:
    """Which of them does not matter; those that are used under their own number stay."""
    assert [device["id"] for device in described_devices(listed(0, 1, 2), {1, 9})] == [0, 1, 9]
    assert [device["id"] for device in described_devices(listed(0, 1), {0})] == [0, 1]


def test_nothing_is_matched_that_could_be_wrong() -> None:
    """Different devices, or more used than listed."""
    mixed = [*listed(0), *listed(1, name="AMD Instinct MI210")]
    assert [device["id"] for device in described_devices(mixed, {5})] == [0, 1]
    assert [device["id"] for device in described_devices(listed(0), {4, 5})] == [0]
    assert described_devices([], {0}) == []


def test_memory_follows_its_device() -> None:
    """Allocators count as the header does; the host has no such number."""
    memory = pl.DataFrame({"device": [0, 0], "device_kind": ["gpu", "cpu"]})
    moved = renumbered_memory(memory, described_devices(listed(0), {2}))
    assert moved["device"].to_list() == [2, 0]
    assert renumbered_memory(memory, described_devices(listed(0), {0})).equals(memory)


def test_a_device_without_a_name() -> None:
    """Compute units and memory say which; where they fit nothing, it stays nameless."""
    found = described_devices(listed(0, name=""), set())
    assert found[0]["name"] == "AMD Instinct MI300X"
    v100 = {
        "id": 0,
        "compute_cap_major": 7,
        "compute_cap_minor": 0,
        "core_count": 80,
        "memory_size": 16 * GIB,
    }
    assert described_devices([v100], set())[0]["name"] == "Tesla V100"
    assert described_devices(listed(0, name="", numSms=7), set())[0]["name"] == ""
    assert described_devices(listed(0, name="Mine"), set())[0]["name"] == "Mine"


def test_ranks_that_number_their_devices_differently() -> None:
    """Eight are listed by each rank, and two are used: not ten."""
    ranks = [using(2), using(9)]
    assert [(found.name, found.count, found.used) for found in devices_of(ranks)] == [
        ("AMD Instinct MI300X", 8, 2)
    ]


def using(number: int) -> Trace:
    """The trace of a rank on a machine with eight devices, of which it uses the one that events call so."""
    made = draft("""
    track     start  dur  name  kind
    stream 7      0   10  gemm  kernel
    """)
    made.tracks = made.tracks.with_columns(device=pl.lit(number, dtype=pl.Int32))
    made.info = TraceInfo(devices=listed(*range(8)))
    return finish(made)
