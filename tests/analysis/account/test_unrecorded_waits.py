"""Waits that left no event: the host goes on each time when the device has run dry."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.trace import Trace
from tests.builders.inline import US, trace_of


def layers(kernel_us: list[int], goes_on_us: list[int]) -> str:
    """Each layer is launched, the device works for some time, and the host goes on at a time of its own."""
    lines, now = [], 10
    for number, (busy, after) in enumerate(zip(kernel_us, goes_on_us, strict=True)):
        lines.append(f"main  {now}  20  PjitFunction(f)  span  -")
        lines.append(f"main  {now + 10}  5  cuLaunchKernel  runtime  k{number}")
        lines.append(f"stream 7  {now + 20}  {busy}  k{number}  kernel  -")
        now += 20 + after
    body = "\n".join(lines)
    return f"""
        track     start  dur  name              kind        launches
        main          0  {now}  ProfilerStep#1    annotation  -
        {body}
        """


def jax_trace(text: str) -> Trace:
    """As JAX would have recorded it."""
    return trace_of(text, framework="jax")


BUSY = [300, 120, 450, 200, 380, 150]


def test_a_host_that_goes_on_when_the_device_is_done_has_waited() -> None:
    trace = jax_trace(layers(BUSY, [busy + 60 for busy in BUSY]))
    found = unrecorded_waits(trace, find_steps(trace))
    assert len(found) == 6
    assert found["dry_ns"][0] == (30 + 300) * US
    sums = account(trace, find_steps(trace)).parts.group_by("part").agg(pl.col("ns").sum())
    assert dict(sums.iter_rows())["sync"] >= 5 * 60 * US


@pytest.mark.parametrize(("late", "count"), [(400, 6), (700, 0)])
def test_a_long_wait_may_end_later(late: int, count: int) -> None:
    busy = [2500, 2700, 2600, 2450, 2550, 2650]
    trace = jax_trace(layers(busy, [each + late for each in busy]))
    assert len(unrecorded_waits(trace, find_steps(trace))) == count


@pytest.mark.parametrize("own_time", [90, 700])
def test_code_that_takes_its_own_time_is_no_wait(own_time: int) -> None:
    trace = jax_trace(layers(BUSY, [own_time] * 6))
    assert unrecorded_waits(trace, find_steps(trace)).is_empty()


def with_own_time_before(own_us: int) -> str:
    """Each layer is launched, the host does something short that leaves no event, a span follows, and then it waits for the device."""
    lines, now = [], 10
    for number, busy in enumerate(BUSY):
        lines += [
            f"main  {now}  20  PjitFunction(f)  span  -",
            f"main  {now + 10}  5  cuLaunchKernel  runtime  k{number}",
            f"stream 7  {now + 20}  {busy}  k{number}  kernel  -",
            f"main  {now + 20 + own_us}  2  PythonRefManager::CollectGarbage  span  -",
        ]
        now += 20 + busy + 60
    body = "\n".join(lines)
    return f"""
        track     start  dur  name              kind        launches
        main          0  {now}  ProfilerStep#1    annotation  -
        main          1  {now - 2}  $train.py:7 step  python  -
        {body}
        """


@pytest.mark.parametrize(("own_us", "count"), [(35, 6), (75, 0)])
def test_what_little_comes_before_each_wait_hides_none(own_us: int, count: int) -> None:
    """It is most of the silences' number or half of it, but their time decides as well."""
    trace = jax_trace(with_own_time_before(own_us))
    assert len(unrecorded_waits(trace, find_steps(trace))) == count


def test_pytorch_records_its_waits() -> None:
    trace = trace_of(layers(BUSY, [busy + 60 for busy in BUSY]), framework="pytorch")
    assert unrecorded_waits(trace, find_steps(trace)).is_empty()
