"""Who is late, from the times that ranks spend in the same collectives."""

from __future__ import annotations

import polars as pl

from stepscope.across.stragglers import by_rank, lateness, straggler
from stepscope.analysis.collective_calls import CALLS
from stepscope.report.model import Finding
from stepscope.report.model import Straggler as Told
from stepscope.report.straggler import with_straggler


def calls(*rows: tuple[int, str, int], **more: object) -> pl.DataFrame:
    """Calls of (step, operation, duration), one after the other."""
    facts = [
        {"event": at, "name": name, "dur_ns": dur, "start_ns": 1000 * at, "step": step, **more}
        for at, (step, name, dur) in enumerate(rows)
    ]
    return pl.DataFrame(facts, schema=CALLS)


def test_who_spends_least_time_comes_last() -> None:
    late = lateness(
        {
            0: calls((1, "all_reduce", 50), (2, "all_reduce", 60)),
            1: calls((1, "all_reduce", 10), (2, "all_reduce", 20)),
            2: calls((1, "all_reduce", 30), (2, "all_reduce", 90)),
        }
    )
    assert by_rank(late).to_dicts() == [
        {"rank": 0, "matched": 2, "last": 0, "late_ns": 0, "wait_ns": 40 + 40},
        {"rank": 1, "matched": 2, "last": 2, "late_ns": 20 + 40, "wait_ns": 0},
        {"rank": 2, "matched": 2, "last": 0, "late_ns": 0, "wait_ns": 20 + 70},
    ]
    found = straggler(late, step_ns=1000, steps=2)
    assert found is not None
    assert (found.rank, found.late_ns_per_step, found.share) == (1, 30, 0.06)
    assert (found.steps_late, found.steps, found.always) == (
        2,
        2,
        False,
    )  # two steps are too few to say always


def test_always() -> None:
    steps = range(5)
    late = lateness(
        {0: calls(*((s, "all_gather", 90) for s in steps)), 1: calls(*((s, "all_gather", 10) for s in steps))}
    )
    found = straggler(late, step_ns=5000, steps=5)
    assert found is not None and found.always and found.names == ("all_gather",)


def test_nobody_is_late() -> None:
    """Little time, or everybody in turn."""
    a, b = (
        calls((1, "all_reduce", 100), (2, "all_reduce", 90)),
        calls((1, "all_reduce", 90), (2, "all_reduce", 100)),
    )
    assert straggler(lateness({0: a, 1: b}), step_ns=10_000, steps=2) is None
    thirds = {
        rank: calls(*((step, "all_reduce", 10 if step == rank else 100) for step in range(3)))
        for rank in range(3)
    }
    assert straggler(lateness(thirds), step_ns=1000, steps=3) is None
    assert straggler(lateness({}), step_ns=1000, steps=3) is None
    assert straggler(lateness({0: a}), step_ns=1000, steps=2) is None


def test_a_root_need_not_wait() -> None:
    """Who leaves a broadcast early is not late, it was the one that sent."""
    assert lateness({0: calls((1, "broadcast", 5)), 1: calls((1, "broadcast", 900))}).is_empty()


def test_calls_are_matched_by_number_first() -> None:
    """Rank 1 was recorded from a later call on."""
    first = pl.concat([calls((1, "all_reduce", 10), sequence=7), calls((1, "all_reduce", 50), sequence=8)])
    second = calls((1, "all_reduce", 20), sequence=8)
    late = lateness({0: first, 1: second})
    assert by_rank(late).select("rank", "matched", "late_ns").rows() == [(0, 1, 0), (1, 1, 30)]


def test_groups_are_kept_apart() -> None:
    """Two pairs of ranks that share a name but not their members."""
    pair = {0: "[0,1]", 1: "[0,1]", 2: "[2,3]", 3: "[2,3]"}
    times = {0: 10, 1: 90, 2: 500, 3: 400}
    late = lateness(
        {rank: calls((1, "all_reduce", times[rank]), group="1", group_ranks=pair[rank]) for rank in pair}
    )
    assert by_rank(late)["late_ns"].to_list() == [80, 0, 0, 100]


def _waits(share: float, saves: int) -> Finding:
    return Finding(
        code="exposed-collective", class_="time", title="", detail="", share=share, saves_ns_per_step=saves, speedup=2.0, speedup_max=2.0
    )  # fmt: skip


def _told(late: int, share: float) -> Told:
    return Told(
        rank=1, late_ns=late, late_ns_per_step=late, share=share, last=1, matched=1, steps_late=1, steps=1, always=False
    )  # fmt: skip


def test_its_time_is_no_longer_the_collectives() -> None:
    found = with_straggler([_waits(0.5, 50)], _told(30, 0.3), step_ns=100)
    assert [finding.code for finding in found] == ["straggler", "exposed-collective"]
    assert [finding.saves_ns_per_step for finding in found] == [30, 20]
    assert [round(finding.share, 6) for finding in found] == [0.3, 0.2]
    assert found[1].speedup == 1.25
    assert [finding.code for finding in with_straggler([_waits(0.3, 30)], _told(30, 0.3), 100)] == [
        "straggler"
    ]
    assert with_straggler([_waits(0.3, 30)], None, 100)[0].share == 0.3
