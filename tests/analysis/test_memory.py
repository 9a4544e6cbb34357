"""Memory: the peak, what was live then, growth, and what was never freed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from stepscope.analysis.memory import DeviceMemory, memory_use, timeline
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from tests.builders.tables import draft

TWO_STEPS = """
    track  start  dur  name            kind
    main       0  100  ProfilerStep#1  annotation
    main      10   50  aten::mm        op
    main      20    0  [memory]        memory
    main      30    0  [memory]        memory
    main     100  100  ProfilerStep#2  annotation
    main     110   50  aten::add       op
    main     120    0  [memory]        memory
    main     130    0  [memory]        memory
    """


def used(events: str, *rows: dict[str, Any], **more: Any) -> list[DeviceMemory]:
    """What these allocations come to, by event; on GPU 0 if nothing else is said."""
    given = [{"device": 0, "device_kind": "gpu", **more, **row} for row in rows]
    made = draft(events, memory=pl.DataFrame(given, schema=TABLES["memory"]))
    trace = finish(made)
    return memory_use(trace, find_steps(trace))


def at(event: int, time: int, size: int, address: int | None = 1, total: int | None = None) -> dict[str, Any]:
    """One allocation, or with a negative size one release."""
    return {"event": event, "time_ns": time, "bytes": size, "address": address, "total_allocated": total}


def test_peak_and_what_was_live() -> None:
    """The largest total; what came before it and was not yet freed. What is older is unknown."""
    (found,) = used(
        TWO_STEPS,
        at(2, 20, 100, 1, 1100),
        at(3, 30, -100, 1, 1000),
        at(6, 120, 300, 2, 1300),
        at(7, 130, 50, 3, 1350),
    )
    assert (found.peak_bytes, found.peak_at_ns, found.source) == (1350, 130, "allocator")
    live = [(row["op"], row["bytes"]) for row in found.at_peak.to_dicts()]
    assert live == [(None, 1000), ("aten::add", 350)]
    assert found.known_share == round(350 / 1350, 4)
    assert "before the recording" in found.note


def test_totals_are_summed_where_the_allocator_gave_none() -> None:
    (found,) = used(TWO_STEPS, at(2, 20, 100), at(3, 30, -40), at(6, 120, 300))
    assert found.peak_bytes == 360
    assert "no totals" in found.note


def test_a_release_of_something_older_does_not_go_below_nothing() -> None:
    (found,) = used(TWO_STEPS, at(2, 20, -500), at(6, 120, 300))
    assert found.peak_bytes == 300


def test_never_freed() -> None:
    """What all steps but the last allocated and nobody freed; the last step's may be freed later."""
    (found,) = used(
        TWO_STEPS,
        at(2, 20, 100, 1, 100),
        at(3, 30, 50, 2, 150),
        at(6, 120, -50, 2, 100),
        at(7, 130, 9, 3, 109),
    )
    assert found.never_freed_bytes == 100


def test_growth_wants_three_steps() -> None:
    steps = "\n".join(f"main  {100 * n}  100  ProfilerStep#{n}  annotation" for n in range(4))
    events = f"track  start  dur  name  kind\n{steps}\n" + "\n".join(
        f"main  {100 * n + 50}  0  [memory]  memory" for n in range(4)
    )
    rows = [at(4 + n, 100 * n + 50, 8, n, 8 * (n + 1)) for n in range(4)]
    assert used(events, *rows)[0].growth_bytes_per_step == 8
    assert used(TWO_STEPS, at(2, 20, 8, 1, 8))[0].growth_bytes_per_step is None


@pytest.mark.parametrize(
    ("kept", "growth"),
    [
        ([{"device": 0, "bytes": 4 * 6}], 2),
        ([{"device": 0, "bytes": 4 * 9}], 0),
        ([{"device": 1, "bytes": 4 * 6}], 8),
        ([{"device": 0, "bytes": "24"}, 3], 8),
        ("much", 8),
        (None, 8),
    ],
)
def test_what_the_capture_keeps_is_no_growth_of_the_job(kept: object, growth: int) -> None:
    steps = "\n".join(f"main  {100 * n}  100  ProfilerStep#{n}  annotation" for n in range(4))
    marks = "\n".join(f"main  {100 * n + 50}  0  [memory]  memory" for n in range(4))
    rows = [
        {"device": 0, "device_kind": "gpu", **at(4 + n, 100 * n + 50, 8, n, 8 * (n + 1))} for n in range(4)
    ]
    made = draft(
        f"track  start  dur  name  kind\n{steps}\n{marks}",
        memory=pl.DataFrame(rows, schema=TABLES["memory"]),
    )
    trace = finish(replace(made, info=replace(made.info, capture={"kept": kept})))
    assert memory_use(trace, find_steps(trace))[0].growth_bytes_per_step == growth


def test_steps_that_wait_in_the_queue_of_a_program_are_no_growth() -> None:
    """The host gives the device four steps before the first is done; each holds its memory until then."""
    lines = "\n".join(f"main  {100 * n}  100  ProfilerStep#{n}  annotation" for n in range(4))
    marks = "\n".join(f"main  {100 * n + 50}  0  [memory]  memory" for n in range(4))
    rows = [
        {"device": 0, "device_kind": "gpu", **at(4 + n, 100 * n + 50, 8, n, 8 * (n + 1))} for n in range(4)
    ]
    made = draft(
        f"track  start  dur  name  kind\n{lines}\n{marks}",
        memory=pl.DataFrame(rows, schema=TABLES["memory"]),
    )
    made.info.framework = "jax"
    trace = finish(made)
    steps = find_steps(trace)

    def growth(*ends: int) -> int | None:
        done = pl.DataFrame(
            {"device": [0] * 4, "step": [0, 1, 2, 3], "end_ns": ends}, schema_overrides={"device": pl.Int32}
        )
        return memory_use(trace, replace(steps, windows=done))[0].growth_bytes_per_step

    assert growth(450, 550, 650, 750) == 0
    assert growth(90, 190, 290, 390) == 8


def test_without_addresses_nothing_is_said_of_what_was_live() -> None:
    (found,) = used(TWO_STEPS, at(2, 20, 100, None, 100))
    assert found.known_share is None and found.never_freed_bytes is None
    assert found.at_peak.to_dicts() == [{"kind": "unknown", "op": None, "scope": None, "bytes": 100}]


def test_fragmentation() -> None:
    (found,) = used(TWO_STEPS, at(2, 20, 100, 1, 100) | {"total_reserved": 400})
    assert (found.reserved_peak, found.fragmentation) == (400, 0.75)


def test_devices_and_the_host_are_kept_apart() -> None:
    """The host is one, whatever number a writer gave it, and comes last."""
    host = {"device": -1, "device_kind": "cpu"}
    found = used(
        TWO_STEPS, at(2, 20, 7, 1, 7) | host, at(3, 30, 100, 1, 100), at(6, 120, 5, 2, 5) | {"device": 1}
    )
    assert [(one.device_kind, one.device, one.peak_bytes) for one in found] == [
        ("gpu", 0, 100),
        ("gpu", 1, 5),
        ("cpu", None, 7),
    ]


def test_nothing_recorded() -> None:
    assert used(TWO_STEPS) == []


def test_a_short_curve_has_the_peaks_and_the_levels_between_them() -> None:
    """Of each bin its highest total and its last: a curve of peaks alone would look as if nothing was ever freed."""
    totals = [10, 90, 20, 30, 80, 5, 5, 70]
    rows = pl.DataFrame({"time_ns": range(8), "allocated": totals, "reserved": [100] * 8})
    found = timeline(rows, 4)
    assert found["time_ns"].to_list() == [1, 3, 4, 7]
    assert found["allocated"].to_list() == [90, 30, 80, 70]
    assert timeline(rows, 8)["allocated"].to_list() == totals
