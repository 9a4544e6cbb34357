"""Ranks that read the same clock, because they ran on the same machine: then no end of a call is more precise.

It counts for collectives on the host only (gloo, MPI, programs on CPUs): a rank that wakes late there ends later each time, by
milliseconds, which looks like an offset. Kernels on devices end together within microseconds, and are believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.registers.calibration.clocks import SAME_BOOT_NS, SHARED_CLOCK_NS
from stepscope.registers.policy.ranks import SELDOM_IMPOSSIBLE

_NO_NAME = ("localhost", "127.0.0.1")

Machine = tuple[str, int]


def machine_of(host: str | None, capture: Mapping[str, Any]) -> Machine | None:
    """What identifies the machine that a rank ran on: when it was started, by its clock, else its name."""
    clock = capture.get("clock")
    started = clock.get("offset_ns") if isinstance(clock, Mapping) else None
    if isinstance(started, int) and started > 0:
        return "", started
    return (host, 0) if host and host not in _NO_NAME else None


def shared_clocks(ends: pl.DataFrame, machines: Mapping[int, Machine | None]) -> dict[int, int]:
    """For each rank the first one with the same clock; `ends` (key, rank, start_ns, end_ns, on_host) are those of shared calls."""
    by_device = set(ends.filter(~pl.col("on_host").fill_null(False))["rank"].unique())
    known = {rank: place for rank, place in machines.items() if place is not None and rank not in by_device}
    found = {rank: rank for rank in ends["rank"].unique()}
    for ranks in _together(known):
        if _possible(ends.filter(pl.col("rank").is_in(ranks))):
            found |= {rank: ranks[0] for rank in ranks if rank in found}
    return found


def _together(machines: Mapping[int, Machine]) -> list[list[int]]:
    groups: list[list[int]] = []
    last: Machine | None = None
    for rank, (name, started) in sorted(machines.items(), key=lambda item: (item[1], item[0])):
        if last is None or last[0] != name or started - last[1] > SAME_BOOT_NS:
            groups.append([])
        groups[-1].append(rank)
        last = (name, started)
    return [sorted(group) for group in groups if len(group) > 1]


def _possible(ends: pl.DataFrame) -> bool:
    """Whether, by one clock, no rank leaves before all have arrived: else names or files were copied."""
    calls = ends.group_by("key").agg(early=pl.col("start_ns").max() - pl.col("end_ns").min())
    return bool((calls["early"] > SHARED_CLOCK_NS).sum() <= SELDOM_IMPOSSIBLE * len(calls))
