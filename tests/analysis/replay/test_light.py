"""Two windows joined by the order of their launches: the host's time of the light one, for the launches of the full one."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.analysis.replay.light import LightHost, NotJoined, join_light
from stepscope.analysis.replay.plan import SPEEDS
from stepscope.analysis.replay.unprofiled_host import plan
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.trace import Trace
from tests.builders.inline import US, trace_of

HEAD = "track  start  dur  name  kind  launches"
KERNELS = tuple(f"k{number}" for number in range(30))


def window(
    steps: int,
    gap: int,
    kernels: Sequence[str] = KERNELS,
    *,
    marked: bool = True,
    thread: str = "main",
    pauses: Sequence[int] = (),
    others: Sequence[str] = (),
    kernel_us: int = 3,
    capture: dict[str, object] | None = None,
) -> tuple[Trace, list[int]]:
    """Steps that launch these kernels, one every `gap` µs; a step in `pauses` stops for 5 ms in its middle. With its moments."""
    rows, at, moments = [], 0, [0]
    for step in range(steps):
        begin = at
        for place, kernel in enumerate(kernels):
            at += gap + (5_000 if step in pauses and place == len(kernels) // 2 else 0)
            rows.append(f"{thread}  {at - 2}  2  cudaLaunchKernel  runtime  {kernel}")
            rows.append(f"stream 7  {at + 1}  {kernel_us}  {kernel}  kernel  -")
        at += gap
        moments.append(at * US)
        if marked:
            rows.append(f"main  {begin}  {at - begin}  ProfilerStep#{step}  annotation  -")
    return trace_of("\n".join([HEAD, *rows, *others]), framework="pytorch", capture=capture or {}), moments


def join(full: Trace, light: tuple[Trace, list[int]]) -> LightHost | NotJoined:
    return join_light(full, find_steps(full), *light)


def joined(full: Trace, light: tuple[Trace, list[int]]) -> LightHost:
    found = join(full, light)
    assert isinstance(found, LightHost), found
    return found


def test_each_launch_takes_what_it_took_in_the_light_window() -> None:
    full, _ = window(3, 20)
    found = joined(full, window(4, 8, marked=False))
    assert (found.aligned, found.light_steps) == (1.0, 4)
    assert found.factor == pytest.approx(8 / 20)
    inner = found.calls.filter(pl.col("recorded_ns") == 20 * US)
    assert len(inner) >= 3 * 29
    assert inner["host_ns"].unique().to_list() == [8 * US]
    # 30 launches, and the time from the last one to the end.
    assert found.steps.select("dispatch_light_ns", "dispatch_full_ns").unique().rows() == [
        (31 * 8 * US, 31 * 20 * US)
    ]


def test_the_replay_takes_the_light_times() -> None:
    full, _ = window(3, 20)
    steps = find_steps(full)
    made = plan(full, steps, 0, joined(full, window(4, 8, marked=False)))
    assert made.as_recorded().step_ns() / US == pytest.approx(31 * 20, rel=0.02)
    assert made.step_ns() / US == pytest.approx(31 * 8, rel=0.03)


@pytest.mark.parametrize(("kernel_us", "is_known"), [(3, True), (9, False)])
def test_a_step_that_the_device_decides_says_little_of_the_host(kernel_us: int, is_known: bool) -> None:
    """A step of 288 µs where the light ones take 310: so does dispatch, unless kernels of 270 µs hide that it takes less."""
    full, _ = window(3, 20, kernel_us=kernel_us, capture={"unprofiled_step": {"mean_ns": 288 * US}})
    made = plan(full, find_steps(full), 0, joined(full, window(4, 10, marked=False, kernel_us=kernel_us)))
    fast, usual, slow = (int(made.host[name].sum()) / 3 / US for name in SPEEDS)
    assert slow == pytest.approx(288 * 1.06, rel=0.03)
    assert usual == pytest.approx(288 if is_known else (0.6 * 310 * 288) ** 0.5, rel=0.03)
    assert fast == pytest.approx((288 if is_known else 0.6 * 310) * 0.94, rel=0.03)


def test_threads_have_other_ids_in_the_light_file() -> None:
    full, _ = window(3, 20)
    found = joined(full, window(4, 8, marked=False, thread="139872"))
    assert found.factor == pytest.approx(8 / 20)


def test_a_few_other_launches_do_not_disturb_the_rest() -> None:
    full, _ = window(3, 20)
    found = joined(full, window(4, 8, (*KERNELS[:7], "other", *KERNELS[7:]), marked=False))
    assert found.aligned == 1.0
    assert found.calls["factor"].median() == pytest.approx(8 / 20)


def test_other_work_is_not_joined() -> None:
    full, _ = window(3, 20)
    found = join(full, window(4, 8, KERNELS[::-1], marked=False))
    assert isinstance(found, NotJoined) and "agree" in found.reason


def test_a_thread_beside_the_others_comes_when_it_likes() -> None:
    def beside(*moments: int) -> list[str]:
        rows = []
        for at in moments:
            rows.append(f"pin  {at}  1  cudaMemcpyAsync  runtime  copy")
            rows.append(f"stream 9  {at + 3}  1  copy  copy  -")
        return rows

    full, _ = window(3, 20, others=beside(3, 670, 1860))
    found = joined(full, window(3, 8, marked=False, others=beside(160, 252, 600)))
    assert found.factor == pytest.approx(8 / 20)
    assert found.calls.filter(pl.col("recorded_ns") == 20 * US)["host_ns"].unique().to_list() == [8 * US]


def test_waits_do_not_count() -> None:
    def waiting(gap: int, wait: int, *, marked: bool) -> tuple[Trace, list[int]]:
        length = 2 * gap + wait
        rows = []
        for step in range(4):
            at = step * length
            rows.append(f"main  {at + gap - 2}  2  cudaLaunchKernel  runtime  gemm")
            rows.append(f"stream 7  {at + gap}  {wait}  gemm  kernel  -")
            rows.append(f"main  {at + gap + 5}  {wait - 5}  cudaStreamSynchronize  runtime  -")
            if marked:
                rows.append(f"main  {at}  {length}  ProfilerStep#{step}  annotation  -")
        moments = [step * length * US for step in range(5)]
        return trace_of("\n".join([HEAD, *rows]), framework="pytorch"), moments

    full, _ = waiting(100, 1000, marked=True)
    found = joined(full, waiting(50, 1000, marked=False))
    assert found.steps["dispatch_full_ns"].unique().to_list() == [(200 + 5) * US]
    assert found.steps["dispatch_light_ns"].unique().to_list() == [(100 + 5) * US]


def test_waits_may_come_more_or_less_often() -> None:
    polled = [f"main  {3 + 20 * place}  4  cudaStreamSynchronize  runtime  -" for place in range(1, 15)]
    full, _ = window(3, 20, others=polled)
    found = joined(full, window(3, 8, marked=False))
    assert found.aligned == 1.0
    waits = found.calls.filter(pl.col("host_ns").is_null())
    assert len(waits) == 14  # the time before each is that before the launch after it
    assert waits["factor"].unique().to_list() == [pytest.approx(8 / 16)]
    assert found.calls.filter(pl.col("recorded_ns") == 16 * US)["host_ns"].unique().to_list() == [8 * US]


def test_together_the_gaps_are_as_long_as_a_step() -> None:
    """Of three steps each has another long gap: no median is long, though every step is."""

    def uneven(gap: int, *, marked: bool) -> tuple[Trace, list[int]]:
        rows, at, moments = [], 0, [0]
        for step in range(3):
            begin = at
            for place, kernel in enumerate(KERNELS):
                at += gap * (11 if place == 10 * step + 5 else 1)
                rows.append(f"main  {at - 2}  2  cudaLaunchKernel  runtime  {kernel}")
                rows.append(f"stream 7  {at + 1}  3  {kernel}  kernel  -")
            at += gap
            moments.append(at * US)
            if marked:
                rows.append(f"main  {begin}  {at - begin}  ProfilerStep#{step}  annotation  -")
        return trace_of("\n".join([HEAD, *rows]), framework="pytorch"), moments

    full, _ = uneven(20, marked=True)
    found = joined(full, uneven(10, marked=False))
    assert found.steps["dispatch_light_ns"].to_list() == [pytest.approx(41 * 10 * US, rel=0.01)] * 3
    assert found.factor == pytest.approx(1 / 2)


def test_slow_steps_go_with_slow_ones() -> None:
    full, _ = window(10, 20, pauses=(4,))
    light = window(8, 8, marked=False, pauses=(6,))
    found = joined(full, light)
    slow = found.calls.filter(pl.col("recorded_ns") > 4_000 * US)
    assert slow["host_ns"].to_list() == [5_008 * US]
    without = joined(full, window(8, 8, marked=False))
    scaled = without.calls.filter(pl.col("recorded_ns") > 4_000 * US)
    assert scaled["factor"].to_list() == [pytest.approx(8 / 20)]  # of its place in the other steps


def test_a_light_window_that_took_longer_shows_something_else() -> None:
    full, _ = window(3, 8)
    found = join(full, window(4, 20, marked=False))
    assert isinstance(found, NotJoined) and "longer" in found.reason


def test_the_clocks_may_differ_a_little() -> None:
    full, _ = window(3, 100, KERNELS[:5])
    light, moments = window(4, 60, KERNELS[:5], marked=False)
    found = join(full, (light, [moment + 59 * US for moment in moments]))
    assert isinstance(found, LightHost)
    assert found.factor == pytest.approx(60 / 100, rel=0.05)


@pytest.mark.parametrize("moments", [[], [0], [10**15, 2 * 10**15]])
def test_moments_without_launches(moments: list[int]) -> None:
    full, _ = window(3, 20)
    assert isinstance(join(full, (window(4, 8, marked=False)[0], moments)), NotJoined)


def test_a_file_without_launches() -> None:
    full, moments = window(3, 20)
    empty = trace_of("\n".join([HEAD, "main  0  5  cudaMalloc  runtime  -"]))
    assert isinstance(join(full, (empty, moments)), NotJoined)
