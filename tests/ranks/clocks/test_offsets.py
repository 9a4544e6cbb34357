"""Clocks of many ranks by the ends of their calls: how far off the fit is, where noise, drift and the number of calls are known."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import polars as pl
import pytest

from stepscope.ranks.clocks.offsets import Clock, fit_clocks
from stepscope.ranks.clocks.shared import machine_of

MS = 1_000_000
NOISES: dict[str, Callable[[Random], float]] = {
    "late": lambda chance: chance.expovariate(1 / 10_000),
    "both ways": lambda chance: chance.gauss(30_000, 10_000),
    "outliers": lambda chance: chance.expovariate(1 / 5_000) + (chance.random() < 0.05) * 200_000,
}


class Job:
    """Ranks whose clocks are up to 50 ms and `ppm` off, and `calls` all-reduces in `length_ms`."""

    def __init__(self, ranks: int, calls: int, length_ms: int, ppm: float, noise: str, seed: int = 1) -> None:
        chance = Random(seed)
        self.offsets = [chance.uniform(-50, 50) * MS for _ in range(ranks)]
        self.drifts = [chance.uniform(-ppm, ppm) * 1e-6 for _ in range(ranks)]
        self.ends = [(at + 1) * length_ms * MS / calls for at in range(calls)]
        self.middle = (self.ends[0] + self.ends[-1]) / 2
        rows = [
            (key, rank, round(end + self.ahead(rank, end) + NOISES[noise](chance)))
            for rank in range(ranks)
            for key, end in enumerate(self.ends)
        ]
        self.found = fit_clocks(_anchors(rows), range(ranks))

    def ahead(self, rank: int, time: float) -> float:
        return self.offsets[rank] + self.drifts[rank] * (time - self.middle)

    def worst_us(self) -> float:
        """The greatest error of any rank at the first and the last call."""
        return max(
            abs(_ahead(clock, end - self.middle) - (self.ahead(rank, end) - self.ahead(0, end))) / 1000
            for rank, clock in self.found.items()
            for end in (self.ends[0], self.ends[-1])
        )


def _ahead(clock: Clock, after_middle: float) -> float:
    return clock.offset_ns + clock.drift * after_middle


def _anchors(rows: list[tuple[int, int, int]], dur_ns: int = 1000, on_host: bool = False) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={"key": pl.UInt64, "rank": pl.Int32, "end_ns": pl.Int64}, orient="row")
    return frame.with_columns(start_ns=pl.col("end_ns") - dur_ns, on_host=pl.lit(on_host))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("calls", "length_ms"), [(30, 300), (100, 1000)])
def test_drifting_clocks_from_the_first_to_the_last_call(noise: str, calls: int, length_ms: int) -> None:
    """No longer recordings than these tell drifts exactly: what is believed of them must not make it worse."""
    assert Job(24, calls, length_ms, 100, noise).worst_us() < 20


@pytest.mark.parametrize("noise", ["late", "outliers"])
def test_five_calls_tell_that_clocks_drift(noise: str) -> None:
    """100 ppm over a second are 50 µs at each end."""
    assert Job(24, 5, 1000, 100, noise, seed=2).worst_us() < 40


def test_no_clock_drifts() -> None:
    found = Job(24, 30, 300, 0, "late").found
    assert all(clock.drift == 0 for clock in found.values())


def test_the_error_is_as_stated() -> None:
    job = Job(32, 40, 400, 0, "both ways")
    first = job.found[0]
    off = [
        (clock.offset_ns - job.offsets[rank] + job.offsets[0]) / ((clock.error_ns or 0) ** 2 + (first.error_ns or 0) ** 2) ** 0.5
        for rank, clock in job.found.items()
        if rank
    ]  # fmt: skip
    assert sum(abs(each) < 3 for each in off) >= 29


def test_a_clock_near_the_first_is_no_exception() -> None:
    """4 µs are less than the doubt, but all clocks differ: the fit is better than nothing."""
    chance = Random(3)
    offsets = [0, 4_000, 3 * MS, -7 * MS, 9 * MS]
    rows = [
        (key, rank, key * MS + offset + chance.randint(0, 4_000))
        for rank, offset in enumerate(offsets)
        for key in range(12)
    ]
    assert fit_clocks(_anchors(rows), range(5))[1].offset_ns == pytest.approx(4_000, abs=2_500)


def _woken_late(rank: int) -> int:
    return 3 * MS * (rank % 2)


@pytest.mark.parametrize(
    ("on_host", "dur_ms", "offset"), [(True, 10, 0), (True, 2, 3 * MS), (False, 10, 3 * MS)]
)
def test_ranks_of_one_machine_have_one_clock(on_host: bool, dur_ms: int, offset: int) -> None:
    """Odd ranks leave gloo's all-reduces 3 ms later each time; it is their clock only if else they left before others came."""
    rows = [(key, rank, key * 100 * MS + _woken_late(rank)) for rank in range(4) for key in range(10)]
    machine = machine_of("vm", {"clock": {"offset_ns": 1_794_742_729_984_079_605}})
    found = fit_clocks(_anchors(rows, dur_ms * MS, on_host), range(4), dict.fromkeys(range(4), machine))
    assert [found[rank].offset_ns for rank in range(4)] == [0, offset, 0, offset]
    assert all(clock.aligned and clock.part == 0 for clock in found.values())


def test_two_machines_of_two_ranks() -> None:
    """The clock of each machine is fitted by all its ranks; who started it when tells them apart, whatever they are called."""
    rows = [
        (key, rank, key * 100 * MS + _woken_late(rank) + 20 * MS * (rank // 2))
        for rank in range(4)
        for key in range(10)
    ]
    started = [1_000_000_000_000_000_000 + 60 * 1_000 * MS * (rank // 2) + rank for rank in range(4)]
    machines = {rank: machine_of("node", {"clock": {"offset_ns": at}}) for rank, at in enumerate(started)}
    found = fit_clocks(_anchors(rows, 30 * MS, on_host=True), range(4), machines)
    assert [found[rank].offset_ns for rank in range(4)] == [0, 0, 20 * MS, 20 * MS]


def test_what_tells_no_machine() -> None:
    assert machine_of("localhost", {}) is None and machine_of(None, {"clock": "?"}) is None
    assert machine_of("node7", {"clock": {"offset_ns": None}}) == ("node7", 0)
