"""Copies of JAX on a stream of their own that run in turn with the kernels: the program waits for them, and they for the one before."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.replay.copies_in_turn import streams_in_turn
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.replay.unprofiled_host import plan
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.frames import conform
from stepscope.trace.trace import Trace
from tests.builders.cases import HEAD
from tests.builders.inline import US, trace_of

STEP, COPY, KERNEL = 1000, 400, 590  # µs
IN_TURN, BESIDE, AT_ITS_END = 5, 700, STEP - KERNEL // 2


def sending(
    begins: int, direction: str = "HtoD", framework: str = "jax", size: int = 20_000_000, count: int = 6
) -> Trace:
    """Steps that copy on stream 8 from `begins` µs on, and compute on stream 7 from 410 to 1000; the host is a step ahead."""
    rows = [HEAD]
    for number in range(count):
        at = STEP * number
        rows += [
            f"main  {at}  {STEP}  ProfilerStep#{number}  annotation  -",
            f"main  {at + 10}  200  BufferFromHostBuffer  op  -",
            f"main  {at + 200}  5  cuMemcpyAsync  runtime  copy.{number}",
            f"main  {at + 210}  5  cuLaunchKernel  runtime  gemm.{number}",
            f"stream 8  {STEP + at + begins}  {COPY}  copy.{number}  copy  -",
            f"stream 7  {STEP + at + 410}  {KERNEL}  gemm.{number}  kernel  -",
        ]
    trace = trace_of("\n".join(rows), framework=framework)
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(size),
        direction=pl.lit(direction),
        source=pl.lit("pinned"),
        target=pl.lit("device"),
    )
    return trace.over({**trace.tables, "copies": conform(copies, trace.copies.schema)}, trace.cold)


def idle_host(trace: Trace) -> Plan:
    """The steps, of a host that only launches."""
    return plan(trace, find_steps(trace), 0).with_host(pl.lit(True))


def played_us(trace: Trace) -> float:
    """Such a step."""
    return idle_host(trace).step_ns() / US


def pairs(trace: Trace) -> dict[int, int]:
    """The streams of copies with those of kernels."""
    return streams_in_turn(trace, trace.tracks.filter(pl.col("what") == "device")["id"])


def test_copies_between_the_kernels_are_played_in_turn() -> None:
    trace = sending(IN_TURN)
    assert len(pairs(trace)) == 1
    assert abs(played_us(trace) - (COPY + KERNEL)) <= 20


@pytest.mark.parametrize(
    "trace",
    [
        sending(BESIDE),
        sending(AT_ITS_END),  # a part of them runs beside kernels
        sending(IN_TURN, direction="DtoH"),  # results, which others may wait for
        sending(IN_TURN, framework="pytorch"),  # a stream of one's own, for which events can wait
        sending(IN_TURN, size=64),  # a number for an op
    ],
    ids=["beside", "partly", "to the host", "PyTorch", "small"],
)
def test_other_copies_run_beside_the_kernels(trace: Trace) -> None:
    assert pairs(trace) == {}
    assert abs(played_us(trace) - KERNEL) <= 20


def test_a_device_with_one_stream() -> None:
    trace = sending(IN_TURN)
    assert streams_in_turn(trace, trace.tracks.filter(pl.col("what") == "device")["id"][:1]) == {}


def test_a_change_can_still_move_them_beside_the_kernels() -> None:
    trace = sending(IN_TURN)
    beside = idle_host(trace).on_own_stream(pl.col("event").is_in(trace.copies["event"].implode()))
    assert abs(beside.step_ns() / US - KERNEL) <= 20
