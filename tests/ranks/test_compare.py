"""Ranks held against each other: calls matched, clocks aligned, arrivals, waits; on tables that fit a screen."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest

from stepscope.analysis.collectives.calls import CALLS
from stepscope.ranks.arrivals import finished, joined_meetings
from stepscope.ranks.calls.matching import SYMMETRIC, keyed
from stepscope.ranks.compare import Calls, Compared, calls_of, compare, look, meet, plan
from stepscope.ranks.stragglers.kernel_work import KERNELS, Ratios
from stepscope.ranks.stragglers.pace import PARTS, STEPS, Pace
from stepscope.registers.policy.ranks import SAME_ARRIVAL_NS
from tests.builders.jobs.parallel_job import Job, courses
from tests.sample import SOAKS

NO_PACE = Pace(pl.DataFrame(schema=STEPS), pl.DataFrame(schema=PARTS))


@pytest.fixture(autouse=True)
def _small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of these tables are small numbers: there even one nanosecond is a difference."""
    monkeypatch.setattr("stepscope.ranks.arrivals.SAME_ARRIVAL_NS", 0)


def calls(*rows: tuple[int, str, int, int], **more: object) -> pl.DataFrame:
    """Calls of (step, operation, start, duration)."""
    facts = [
        {"event": at, "name": name, "start_ns": start, "dur_ns": dur, "step": step, "exposed_ns": dur, **more}
        for at, (step, name, start, dur) in enumerate(rows)
    ]
    return pl.DataFrame(facts, schema=CALLS)


def compared(*ranks: pl.DataFrame) -> Compared:
    """All ranks, numbered from 0."""
    return compare({rank: calls_of(rows, rank, NO_PACE) for rank, rows in enumerate(ranks)})


def test_waits_by_a_common_clock() -> None:
    """Rank 1's clock is 1,000,000 ahead; it comes 40 before the end of which the other waits 60."""
    found = compared(
        calls((1, "all_reduce", 100, 100), (2, "all_reduce", 300, 100)),
        calls((1, "all_reduce", 1_000_160, 40), (2, "all_reduce", 1_000_360, 40)),
    )
    assert found.clocks[1].offset_ns == 1_000_000 and found.clocks[1].residual_ns == 0
    assert [(rank.last, rank.matched, rank.late_ns, rank.wait_ns) for rank in found.ranks] == [
        (0, 2, 0, 120),
        (2, 2, 120, 0),
    ]
    row = found.meetings.row(0, named=True)
    assert (row["last_rank"], row["first_rank"], row["late_ns"], row["skew_ns"], row["transfer_ns"]) == (
        1,
        0,
        60,
        60,
        40,
    )
    assert found.ranks[0].waits.rows() == [(0, 1, "all_reduce", 120, 2)]


@pytest.mark.parametrize(("later_ns", "last", "late_ns"), [(1_000, 0, 0), (1_001, 1, 1_001)])
def test_within_a_microsecond_nobody_is_the_last(
    later_ns: int, last: int, late_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.ranks.arrivals.SAME_ARRIVAL_NS", SAME_ARRIVAL_NS)
    found = compared(calls((1, "all_gather", 0, 50_000)), calls((1, "all_gather", 0, 50_000 - later_ns)))
    assert [(rank.last, rank.late_ns) for rank in found.ranks] == [(0, 0), (last, late_ns)]


@pytest.mark.parametrize("name", ["all_reduce", "all_gather"])
def test_a_call_that_waits_for_its_own_device_has_not_come(name: str) -> None:
    """Rank 1 enters first, and its data is ready last; by the clock, and by common ends."""
    found = compared(
        calls((1, name, 120, 80), (2, name, 320, 80)),
        calls((1, name, 100, 100), (2, name, 300, 100), held_ns=70),
    )
    assert [(rank.last, rank.late_ns, rank.wait_ns) for rank in found.ranks] == [(0, 0, 100), (2, 100, 0)]
    assert found.meetings["transfer_ns"].to_list() == [30, 30]


def test_without_a_shared_end_times_are_compared() -> None:
    """An all-gather tells no clock: who spends least time in it came last."""
    found = compared(
        calls((1, "all_gather", 100, 50)),
        calls((1, "all_gather", 9_000, 10)),
        calls((1, "all_gather", 7, 30)),
    )
    assert not any(clock.aligned for clock in found.clocks.values())
    assert [rank.wait_ns for rank in found.ranks] == [40, 0, 20]
    assert [rank.late_ns for rank in found.ranks] == [0, 20, 0]


def test_a_root_need_not_wait() -> None:
    """Broadcasts and sends tell neither clocks nor who is late."""
    assert "broadcast" not in SYMMETRIC and "send_recv" not in SYMMETRIC
    found = compared(calls((1, "broadcast", 0, 5)), calls((1, "broadcast", 0, 900)))
    assert found.meetings.is_empty() and not found.clocks[1].aligned and found.straggler is None


def test_calls_are_matched_by_number_first() -> None:
    """Rank 1 was recorded from a later call on."""
    first = pl.concat(
        [calls((1, "all_reduce", 0, 10), sequence=7), calls((1, "all_reduce", 50, 50), sequence=8)]
    )
    found = compared(first, calls((1, "all_reduce", 80, 20), sequence=8))
    assert found.meetings.select("number", "ranks", "late_ns").rows() == [(8, 2, 30)]
    assert found.unusual.select("calls", "example").rows() == [(1, 1)]


def test_calls_with_one_number_are_kept_apart() -> None:
    """A coalesced call runs as several kernels."""
    twice = calls((1, "all_reduce", 0, 10), (1, "all_reduce", 20, 30), sequence=3)
    assert keyed(twice, 0)["again"].to_list() == [0, 1]
    assert compared(twice, twice).meetings["transfer_ns"].to_list() == [10, 30]


def test_steps_with_another_number_of_calls_are_left_out() -> None:
    """By order nothing tells which of the calls rank 2 lacks; in the other step it takes part."""
    both = calls((1, "all_reduce", 0, 10), (1, "all_reduce", 20, 10), (2, "all_reduce", 40, 10))
    short = calls((1, "all_reduce", 20, 10), (2, "all_reduce", 40, 10))
    found = compared(both, both, short)
    assert sorted(found.meetings.select("step", "ranks").rows()) == [(1, 2), (1, 2), (2, 3)]
    assert found.unusual.select("calls", "ranks", "example").rows() == [(2, 1, 2)]


def test_groups_are_kept_apart() -> None:
    """Two pairs of ranks that share a name but not their members."""
    pair = ["[0,1]", "[0,1]", "[2,3]", "[2,3]"]
    times = [10, 90, 500, 400]
    found = compared(
        *(
            calls((1, "all_gather", 0, times[r]), group="1", group_size=2, group_ranks=pair[r])
            for r in range(4)
        )
    )
    assert [rank.late_ns for rank in found.ranks] == [80, 0, 0, 100]


def test_groups_that_cannot_be_told_apart() -> None:
    """Four ranks in one call of a group of two."""
    found = compared(*(calls((1, "all_reduce", 0, 10 + r), group="tp", group_size=2) for r in range(4)))
    assert found.meetings.is_empty() and found.met.ambiguous == 1


def test_clocks_through_several_groups() -> None:
    """Ranks 0 and 2 never meet; rank 1 knows both."""
    first, second = {"group": "a", "sequence": 1}, {"group": "b", "sequence": 1}
    middle = pl.concat(
        [calls((1, "all_reduce", 500, 10), **first), calls((1, "all_reduce", 600, 10), **second)]
    )
    found = compared(
        calls((1, "all_reduce", 0, 10), **first), middle, calls((1, "all_reduce", 7_600, 10), **second)
    )
    assert [clock.offset_ns for clock in found.clocks.values()] == [0, 500, 7_500]


def _drifting(ppm: float, apart_ns: int, noise_ns: int, seed: int = 0) -> Compared:
    """Three ranks with 24 all-reduces; the clock of rank 1 drifts, ends are late by up to the noise."""
    chance = Random(seed)

    def shown(rank: int, number: int) -> int:
        end = (number + 1) * apart_ns
        return end + round(end * ppm * 1e-6 * (rank == 1)) + chance.randint(0, noise_ns)

    return compared(
        *(
            calls(*((number, "all_reduce", shown(rank, number) - 1000, 1000) for number in range(24)))
            for rank in range(3)
        )
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_short_and_noisy_recording_tells_no_drift(seed: int) -> None:
    """Half a second in which ends are up to 0.4 ms late: hundreds of ppm would be noise."""
    clocks = _drifting(0.0, 20_000_000, 400_000, seed).clocks
    assert [clock.drift for clock in clocks.values()] == [0.0, 0.0, 0.0]


def test_clocks_drift_by_what_clocks_do() -> None:
    found = _drifting(50.0, 1_000_000_000, 20_000).clocks
    assert [clock.drift * 1e6 for clock in found.values()] == pytest.approx([0, 50, 0], abs=1.5)
    wrong = _drifting(749.0, 20_000_000, 5_000).clocks  # no clock does that
    assert all(abs(clock.drift) < 2e-5 for clock in wrong.values())


def test_recorded_offsets_are_used() -> None:
    """Where no collective tells the clock."""
    rows = calls_of(calls((1, "all_gather", 100, 10)), 0, NO_PACE, shift_ns=1_000, drift=0.5).rows
    assert rows["start_ns"].to_list() == [1_100]


def test_any_order_and_nesting_is_the_same() -> None:
    """Ranks are put together pairwise, as workers finish."""
    ranks = [
        calls_of(calls(*((s, "all_reduce", 1000 * s + 7 * r, 100 - 7 * r) for s in range(5))), r, NO_PACE)
        for r in range(7)
    ]
    agreed = plan([look(each) for each in ranks])
    single = [meet(each, agreed) for each in ranks]
    at_once = joined_meetings(single)
    nested = joined_meetings(
        [joined_meetings(single[4:]), joined_meetings([single[2], joined_meetings(single[:2])]), single[3]]
    )
    assert nested.equals(at_once)
    assert finished(at_once)["last_rank"].to_list() == [6] * 5


def test_kernels_are_compared_with_those_of_the_same_stage() -> None:
    """The second of two stages launches twice as many, and its slow rank no more than its peers."""
    job = Job(tensor=1, stages=2, replicas=4, device=lambda rank, _: 1.3 if rank == 5 else 1.0)
    course = {each.rank: each for each in courses(job)}
    steps = course[5].work["step"].unique().sort()
    ranks = {}
    for rank, mine in course.items():
        paced = pl.DataFrame([(rank, step, 0, 1000, 100.0) for step in steps], schema=STEPS, orient="row")
        parts = pl.DataFrame(
            [(rank, step, "compute", 130 if rank == 5 else 100) for step in steps], schema=PARTS, orient="row"
        )
        kernels = pl.DataFrame([(rank, 7, 10.0 if rank < 4 else 20.0, 1.0)], schema=KERNELS, orient="row")
        ranks[rank] = calls_of(calls(), rank, Pace(paced, parts, kernels=kernels), course=mine)
    found = compare(ranks).straggler
    assert found is not None and (found.rank, found.cause) == (5, "compute")
    assert found.kernels == Ratios(blocks=1.0, launches=1.0)


def test_an_empty_rank() -> None:
    """One that made no call at all takes nothing from the others."""
    found = compared(calls((1, "all_reduce", 0, 10)), calls(), calls((1, "all_reduce", 5, 5)))
    assert [rank.matched for rank in found.ranks] == [1, 0, 1]
    assert not found.clocks[1].aligned


def test_rows_fit_their_schema() -> None:
    assert isinstance(calls_of(calls(), 0, NO_PACE), Calls)
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        keyed(pl.DataFrame({"name": ["all_reduce"]}), 0)


def margins(*ranks: pl.DataFrame) -> dict[int, list[int]]:
    """By rank how late it came in each step."""
    return {rank.rank: rank.margins["margin_ns"].to_list() for rank in compared(*ranks).ranks}


BUCKETS, APART, SLEEP, TRANSFER = 6, 10, 150, 2


def _buckets(begin: int, others_begin: int, step: int = 1) -> list[tuple[int, str, int, int]]:
    """DDP's calls of one rank: each bucket is sent as soon as it is computed, and ends when all ranks have sent it."""
    rows = []
    for number in range(BUCKETS):
        start = begin + number * APART
        end = max(start, others_begin + number * APART) + TRANSFER
        rows.append((step, "all_reduce", start, end - start))
    return rows


def test_a_sleep_before_many_buckets_costs_the_sleep() -> None:
    """The waits for the late rank overlap on those that wait, though its own calls run one after the other."""
    on_time, late = calls(*_buckets(0, SLEEP)), calls(*_buckets(SLEEP, 0))
    assert margins(on_time, on_time, late, on_time) == {0: [0], 1: [0], 2: [SLEEP], 3: [0]}


def test_delays_one_after_the_other_are_added() -> None:
    """Both ranks leave the first call before they enter the second."""
    waits = calls((1, "all_reduce", 0, 152), (1, "all_reduce", 160, 92))
    comes_late = calls((1, "all_reduce", 150, 2), (1, "all_reduce", 250, 2))
    assert margins(waits, comes_late) == {0: [0], 1: [150 + 90]}


def test_a_second_delay_among_pending_calls_adds_what_it_adds() -> None:
    """The other rank has sent both; the late one sleeps before each."""
    waits = calls((1, "all_reduce", 0, 152), (1, "all_reduce", 10, 302))
    comes_late = calls((1, "all_reduce", 150, 2), (1, "all_reduce", 310, 2))
    assert margins(waits, comes_late) == {0: [0], 1: [300]}


def test_a_wait_that_reaches_into_the_next_step_counts_once() -> None:
    waits = calls((1, "all_reduce", 0, 152), (2, "all_reduce", 10, 152))
    comes_late = calls((1, "all_reduce", 150, 2), (2, "all_reduce", 160, 2))
    assert margins(waits, comes_late) == {0: [0, 0], 1: [150, 0]}


@pytest.mark.parametrize("seed", range(40 if SOAKS else 12))
def test_lateness_never_exceeds_the_step(seed: int) -> None:
    """Ranks that do any amount of work between any calls, waited for at once or at the end, whichever way."""
    random = Random(seed)
    ranks, steps, buckets = random.randint(2, 6), random.randint(1, 6), random.randint(1, 12)
    job = _Job([0] * ranks, [[] for _ in range(ranks)], [[] for _ in range(ranks)])
    for step in range(steps):
        job.run_step(step, buckets, random)
    paces = [
        Pace(_steps_table(rank, job.windows[rank]), _waits_table(rank, job.windows[rank]))
        for rank in range(ranks)
    ]
    found = compare({rank: calls_of(calls(*job.calls[rank]), rank, paces[rank]) for rank in range(ranks)})
    lengths = {
        step: max(job.windows[rank][step][1] - job.windows[rank][step][0] for rank in range(ranks))
        for step in range(steps)
    }
    for rank, step, late in found.late.select("rank", "step", "late_ns").iter_rows():
        assert late <= lengths[step], f"rank {rank}, step {step}"
    if found.straggler is not None:
        assert found.straggler.share <= 1
        assert found.straggler.late_ns_per_step <= max(lengths.values())


class _Job:
    """A job that calls collectives without waiting, or waits for each, as chance has it."""

    def __init__(
        self,
        now: list[int],
        calls: list[list[tuple[int, str, int, int]]],
        windows: list[list[tuple[int, int]]],
    ) -> None:
        self.now, self.calls, self.windows = now, calls, windows

    def run_step(self, step: int, buckets: int, random: Random) -> None:
        """Each rank works, sends each bucket, and waits for all of them at the end."""
        begun, is_blocking, slow = list(self.now), random.random() < 0.5, random.choice((1, 1, 10, 100))
        ends: list[int] = []
        for _ in range(buckets):
            for rank in range(len(self.now)):
                self.now[rank] += random.randint(1, 100) * (slow if rank == 0 else 1)
            arrived = list(self.now)
            ends.append(max(*arrived, *ends[-1:]) + random.randint(1, 5))
            for rank, start in enumerate(arrived):
                self.calls[rank].append((step, "all_reduce", start, ends[-1] - start))
            if is_blocking:
                self.now = [ends[-1]] * len(self.now)
        self.now = [max(at, *ends) + random.randint(0, 20) for at in self.now]
        for rank, (start, end) in enumerate(zip(begun, self.now, strict=True)):
            self.windows[rank].append((start, end))


def _steps_table(rank: int, windows: list[tuple[int, int]]) -> pl.DataFrame:
    rows = [(rank, step, start, end - start, None) for step, (start, end) in enumerate(windows)]
    return pl.DataFrame(rows, schema=STEPS, orient="row")


def _waits_table(rank: int, windows: list[tuple[int, int]]) -> pl.DataFrame:
    """Half of each step is waiting on the host, so that arrivals decide."""
    rows = [(rank, step, "host_collective", (end - start) // 2) for step, (start, end) in enumerate(windows)]
    return pl.DataFrame(rows, schema=PARTS, orient="row")
