"""The devices of one trace: which described one each used one is, and a bound on their number.

Every analysis looks at all events once for each device. A file may claim as many devices as it has events. No process drives more than a few dozen: beyond that the busiest are
kept as devices, and the tracks of the others are only shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from stepscope.registers.calibration.devices import GIB, IDENTITIES
from stepscope.trace.problems import Problems, problem

MOST_DEVICES = 64
_LARGEST_ID = 2**31 - 1  # of the column


_GENERIC_NAMES = ("", "AMD Radeon Graphics")


def described_devices(devices: Sequence[dict[str, Any]], used: Collection[int]) -> list[dict[str, Any]]:
    """The devices as the header lists them, under the numbers that events use, nameless ones with a name.

    ROCm's profilers number devices by the driver in events and from 0 in the header. A used number that is not listed is
    one of the listed devices without events: which one does not matter where they are alike.
    """
    named = [_named(device) for device in devices]
    listed = [device.get("id") for device in named]
    loose = sorted(set(used) - {number for number in listed if isinstance(number, int)})
    free = [place for place, number in enumerate(listed) if number not in used]
    alike = len({(device.get("name"), device.get("totalGlobalMem")) for device in named}) == 1
    if not loose or len(loose) > len(free) or not (alike or len(loose) == len(free) == 1):
        return named
    for place, number in zip(free[len(free) - len(loose) :], loose, strict=True):
        named[place] = {**named[place], "id": number, "listed_id": named[place].get("id")}
    return named


def renumbered_memory(memory: pl.DataFrame, devices: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The allocations under the numbers that events use for their devices: allocators count as the header does."""
    moved = {
        device["listed_id"]: device["id"]
        for device in devices
        if isinstance(device.get("listed_id"), int) and 0 <= device["listed_id"] <= _LARGEST_ID
    }
    if not moved or "device" not in memory.columns or "device_kind" not in memory.columns:
        return memory
    others = {device.get("id") for device in devices}
    moved = {listed: number for listed, number in moved.items() if listed not in others}
    on_device = pl.col("device_kind").cast(pl.String) != "cpu"
    renumbered = pl.col("device").replace(moved) if moved else pl.col("device")
    return memory.with_columns(device=pl.when(on_device).then(renumbered).otherwise("device"))


def _named(device: dict[str, Any]) -> dict[str, Any]:
    """The device with the name of what has its multiprocessors and its memory, where the file gives it none."""
    if str(device.get("name") or device.get("gpu_device_name") or "") not in _GENERIC_NAMES:
        return device
    units = device.get("numSms", device.get("core_count"))
    size = device.get("totalGlobalMem", device.get("memory_size"))
    if not isinstance(units, int) or not isinstance(size, int | float):
        return device
    is_amd = (
        device.get("warpSize") == 64 or "amd" in f"{device.get('device_vendor')}{device.get('name')}".lower()
    )
    capability = tuple(
        device.get(f"compute_cap_{part}", device.get(f"compute{part.title()}")) for part in ("major", "minor")
    )
    for known in IDENTITIES:
        same = known.vendor == "AMD" if is_amd else known.capability == capability
        if same and known.units == units and known.gib[0] <= size / GIB <= known.gib[1]:
            return {**device, "name": known.name, "name_from": "multiprocessors and memory"}
    return device


def bounded_tracks(tracks: pl.DataFrame, events: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    """The tracks, those of too many devices without their device."""
    if tracks["device"].n_unique() <= MOST_DEVICES:
        return tracks
    busy = events.group_by("track").agg(pl.len()).rename({"track": "id"})
    known = tracks.select("id", "device").join(busy, on="id", how="left").drop_nulls("device")
    kept = _largest(known.group_by("device").agg(pl.col("len").sum()))
    gone = pl.col("device").is_not_null() & ~pl.col("device").is_in(kept.implode())
    _note(problems, "tracks", int(tracks.select(gone.sum()).item()))
    on_device = pl.col("what") == "device"
    return tracks.with_columns(
        pl.when(gone & on_device).then(pl.lit("derived")).otherwise(pl.col("what").cast(pl.String)).cast(tracks["what"].dtype).alias("what"),
        pl.when(~gone).then("device"),
    )  # fmt: skip


def bounded_memory(memory: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    """The allocations, without those on too many devices."""
    if "device" not in memory.columns or memory["device"].n_unique() <= MOST_DEVICES:
        return memory
    kept = _largest(memory.drop_nulls("device").group_by("device").agg(pl.len()))
    rows = memory.filter(pl.col("device").is_null() | pl.col("device").is_in(kept.implode()))
    _note(problems, "allocations", len(memory) - len(rows))
    return rows


def _largest(devices: pl.DataFrame) -> pl.Series:
    ranked = devices.sort(pl.col("len").fill_null(0), pl.col("device"), descending=[True, False])
    return ranked["device"].head(MOST_DEVICES)


def _note(problems: Problems, what: str, count: int) -> None:
    detail = (
        f"{{count}} {what} are on further devices than the {MOST_DEVICES} busiest, which no process drives; "
        "they are left out of all figures."
    )
    problems.add(problem("too-many-devices", detail, count=count, what=what))
