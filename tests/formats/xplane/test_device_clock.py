"""TPUs by their own clock: the host's time of events may jump, the device's does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from tests.builders.files import load
from tests.builders.xspace_bytes import PlaneBytes, space
from tests.formats.xplane.test_draft import rows


def plane(*shown: tuple[int, int, int, int]) -> PlaneBytes:
    """A core with instructions by the host's clock and by its own: start, length, start, length in ns."""
    tpu = PlaneBytes("/device:TPU:0")
    events = [
        tpu.event("fusion.1", a * 1_000, b * 1_000, device_offset_ps=c * 1_000, device_duration_ps=d * 1_000)
        for a, b, c, d in shown
    ]
    tpu.line(
        "XLA Modules",
        [tpu.event("jit_f(1)", shown[0][0] * 1_000, sum(shown[-1][:2]) * 1_000 - shown[0][0] * 1_000)],
        2,
    )
    tpu.line("XLA Ops", events, 3)
    return tpu


def test_instructions_and_what_is_around_them_follow_the_device(tmp_path: Path) -> None:
    """The second one seems 50 ns longer than it is; the program around them shrinks as well."""
    trace = load(
        space(plane((100, 10, 0, 10), (110, 70, 10, 20), (180, 10, 30, 10), (190, 10, 40, 10))), tmp_path
    )
    core = trace.events.filter(pl.col("kind") == "kernel")
    assert core["dur_ns"].to_list() == [10, 20, 10, 10]
    (program,) = rows(trace.events.filter(pl.col("kind") == "module"), "start_ns", "dur_ns")
    assert program == (core["start_ns"][0], 50)
    assert abs(core["start_ns"][2] - 180) <= 50


def test_without_device_times_nothing_moves(tmp_path: Path) -> None:
    tpu = PlaneBytes("/device:TPU:0")
    tpu.line("XLA Ops", [tpu.event("fusion.1", 5_000, 7_000)], 3)
    trace = load(space(tpu), tmp_path)
    assert rows(trace.events, "start_ns", "dur_ns") == [(5, 7)]


def test_clocks_that_disagree_on_the_order_are_left_alone(tmp_path: Path) -> None:
    trace = load(space(plane((100, 10, 90, 10), (200, 10, 0, 10))), tmp_path)
    core = trace.events.filter(pl.col("kind") == "kernel")
    assert rows(core, "start_ns", "dur_ns") == [(100, 10), (200, 10)]


def test_absurd_times_are_left_alone(tmp_path: Path) -> None:
    tpu = PlaneBytes("/device:TPU:0")
    stats: dict[str, Any] = {"device_offset_ps": -5, "device_duration_ps": 2**63 - 1}
    tpu.line("XLA Ops", [tpu.event("fusion.1", 5_000, 7_000, **stats)], 3)
    assert rows(load(space(tpu), tmp_path).events, "start_ns", "dur_ns") == [(5, 7)]
