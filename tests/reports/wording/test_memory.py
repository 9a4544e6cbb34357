"""Memory in words: what several ranks have alike is said once, and the fullest device comes first."""

from __future__ import annotations

import msgspec

from stepscope.reports.model.report import LiveRow, MemoryDevice, Report
from stepscope.reports.tables.tables import tables_of
from stepscope.reports.wording.facts import facts_of
from tests.builders.reports import report


def _of_ranks(*peaks: int) -> Report:
    devices = [
        MemoryDevice(
            device=0, device_kind="gpu", source="allocator", peak_bytes=peak, capacity_bytes=100, rank=rank, note=f"{peak} % was there.",
            at_peak=[LiveRow(kind="activation", op="mm", scope=None, bytes=peak)], at_peak_total=1,
        )
        for rank, peak in enumerate(peaks)
    ]  # fmt: skip
    found = report()
    profile = msgspec.structs.replace(found.profile, ranks=list(range(len(peaks))))
    memory = msgspec.structs.replace(found.memory, devices=devices)
    return msgspec.structs.replace(found, profile=profile, memory=memory)


def test_equal_remarks_of_ranks_are_one() -> None:
    assert facts_of(_of_ranks(78, 78, 90, 78), "memory") == [
        ("gpu 0 of ranks 0–1, 3", "78 % was there."),
        ("gpu 0 of rank 2", "90 % was there."),
    ]
    assert facts_of(_of_ranks(78), "memory") == [("gpu 0", "78 % was there.")]


def test_what_was_live_on_the_fullest_device_comes_first() -> None:
    live = next(each for each in tables_of(_of_ranks(78, 20, 90), "memory") if each.name == "memory_at_peak")
    assert [row["where"] for row in live.rows] == ["gpu 0 of rank 2", "gpu 0 of rank 0", "gpu 0 of rank 1"]
