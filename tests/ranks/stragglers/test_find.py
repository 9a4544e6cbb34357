"""Who is late, of which kind and why, from what the steps of all ranks are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import polars as pl
import pytest

from stepscope.ranks.stragglers.find import Straggler, straggler
from stepscope.ranks.stragglers.kernel_work import Ratios, kernel_work, ratios
from stepscope.ranks.stragglers.lateness import lateness, others_median
from stepscope.ranks.stragglers.pace import PARTS, STEPS
from stepscope.reports.model.report import Finding, Interval
from stepscope.reports.model.report import Straggler as Told
from stepscope.reports.ranks.straggler_finding import with_straggler
from stepscope.trace.frames import conform

Extra = Callable[[int, int], Mapping[str, int]]  # of a rank and step: what its parts take longer
USUAL = {"compute": 700, "input": 100, "dispatch": 100}


def found(extra: Extra, ranks: int = 4, steps: int = 10, blocks: bool = False) -> Straggler | None:
    """The straggler among ranks whose steps of 900 end together in a collective."""
    step_rows, part_rows = [], []
    for step in range(steps):
        took = {rank: _with(extra(rank, step)) for rank in range(ranks)}
        longest = max(sum(parts.values()) for parts in took.values()) + 100
        for rank, parts in took.items():
            amount = parts["compute"] if blocks else USUAL["compute"]
            step_rows.append((rank, step, step * 10_000, longest, float(amount)))
            waits = {"collective": longest - sum(parts.values())}
            part_rows += [(rank, step, part, ns) for part, ns in {**parts, **waits}.items()]
    step_table = pl.DataFrame(step_rows, schema=STEPS, orient="row")
    part_table = pl.DataFrame(part_rows, schema=PARTS, orient="row")
    return straggler(lateness(step_table, part_table), step_table, part_table)


def _with(extra: Mapping[str, int]) -> dict[str, int]:
    return {part: ns + extra.get(part, 0) for part, ns in USUAL.items()}


def test_always_late_because_of_its_input() -> None:
    late = found(lambda rank, step: {"input": 90} if rank == 2 else {})
    assert late is not None
    assert (late.rank, late.kind, late.cause, late.always) == (2, "always", "input", True)
    assert (late.late_ns_per_step, late.steps_late, late.steps) == (90, 10, 10)
    assert late.parts == {"input": 90}
    assert late.share == pytest.approx(0.09, abs=0.01)


def test_a_few_steps_in_which_it_is_far_later_are_another_matter() -> None:
    """Late by 90 of 1090 in every step, and by ten times that in two, in which another program has its core."""

    def extra(rank: int, step: int) -> Mapping[str, int]:
        return {"compute": 900 if step in (3, 7) else 88 + step % 5} if rank == 2 else {}

    late = found(extra)
    assert late is not None and (late.rank, late.kind) == (2, "always")
    assert late.share == pytest.approx(90 / 1090, abs=0.003)


def test_what_the_others_hide_in_their_waits_is_no_cause() -> None:
    """Rank 2's input takes 90 longer, and then all its dispatch shows, which the others do while they wait for it."""
    shown = _parts({"input": 90, "dispatch": 150})
    did = _parts({"input": 90})
    steps = pl.DataFrame(
        [(rank, step, 0, 1200, 1.0) for step in range(5) for rank in range(4)], schema=STEPS, orient="row"
    )
    late = straggler(lateness(steps, shown), steps, shown, did=did)
    assert late is not None and (late.rank, late.cause) == (2, "input")
    nothing = straggler(lateness(steps, shown), steps, shown, did=_parts({}))
    assert nothing is not None and nothing.cause == "dispatch"  # late before: all that shows is told


def test_hosts_that_work_on_after_a_late_arrival_did_not_wait_all_of_it() -> None:
    """Rank 2 computes 120 longer, and comes 200 late to collectives behind which the others go on."""
    names = {"compute": "host_compute", "collective": "host_collective"}
    shown = _parts({"compute": 120}).with_columns(pl.col("part").replace(names))
    steps = pl.DataFrame(
        [(rank, step, 0, 1200, 1.0) for step in range(5) for rank in range(4)], schema=STEPS, orient="row"
    )
    margins = steps.filter(pl.col("rank") == 2).select("rank", "step", margin_ns=pl.lit(200, pl.Int64))
    late = straggler(lateness(steps, shown, margins), steps, shown)
    assert late is not None and (late.rank, late.cause, late.late_ns_per_step) == (2, "host_compute", 120)


def test_what_was_not_recorded_is_no_cause() -> None:
    """Rank 2 computes 90 longer; in its first step, work from before the recording was still running for much longer than that."""
    shown = _parts({"compute": 90})
    before = pl.DataFrame([(2, 0, "unrecorded", 1000)], schema=PARTS, orient="row")
    steps = pl.DataFrame(
        [(rank, step, 0, 1200, 1.0) for step in range(5) for rank in range(4)], schema=STEPS, orient="row"
    )
    late = straggler(lateness(steps, shown), steps, pl.concat([shown, before]))
    assert late is not None and (late.rank, late.cause) == (2, "compute")
    assert late.parts == {"compute": 90}


def _parts(longer: Mapping[str, int]) -> pl.DataFrame:
    """Of four ranks and five steps of 1200, most of which the others wait for rank 2."""
    rows = []
    for step in range(5):
        for rank in range(4):
            parts = {part: ns + (longer.get(part, 0) if rank == 2 else 0) for part, ns in USUAL.items()}
            parts["collective"] = 1200 - sum(parts.values())
            rows += [(rank, step, part, ns) for part, ns in parts.items()]
    return pl.DataFrame(rows, schema=PARTS, orient="row")


def test_more_work_in_every_step_by_another_amount() -> None:
    """Sequences of any length, on one rank: its batches are uneven, though it is always late."""
    late = found(lambda rank, step: {"compute": 60 + 70 * (step % 5)} if rank == 1 else {}, blocks=True)
    assert late is not None and (late.rank, late.kind, late.cause) == (1, "data-dependent", "work")


def test_a_whole_host_is_late() -> None:
    """Two of eight ranks: neither is waited for alone."""
    late = found(lambda rank, step: {"dispatch": 80 + rank} if rank in (2, 3) else {}, ranks=8)
    assert late is not None and (late.rank, late.ranks, late.cause) == (3, (2, 3), "dispatch")


def test_two_ranks_are_enough() -> None:
    late = found(lambda rank, step: {"compute": 90 * rank}, ranks=2)
    assert late is not None and (late.rank, late.kind, late.cause) == (1, "always", "compute")


def test_sometimes_late() -> None:
    late = found(lambda rank, step: {"dispatch": 200} if rank == 1 and step % 3 == 0 else {})
    assert late is not None and (late.rank, late.kind, late.cause) == (1, "sometimes", "dispatch")
    assert late.steps_late == 4


def test_uneven_batches() -> None:
    """Another rank has more to compute in each step."""
    late = found(lambda rank, step: {"compute": 250} if rank == step % 4 else {}, blocks=True)
    assert late is not None and (late.kind, late.cause, late.ranks) == (
        "data-dependent",
        "work",
        (0, 1, 2, 3),
    )


def test_the_same_work_takes_longer_now_and_then() -> None:
    """In turn, too, but the kernels have no more blocks."""
    late = found(lambda rank, step: {"compute": 250} if rank == step % 4 else {})
    assert late is not None and (late.kind, late.cause) == ("sometimes", "compute")


def test_more_work_in_all_steps_is_no_uneven_batch() -> None:
    """Though it is waited for in one step only: a larger batch, and not another one in each step."""
    late = found(
        lambda rank, step: {"compute": 400 * rank, "input": 390 * (1 - rank) * (step != 1)}, 2, 4, True
    )
    assert late is not None and (late.rank, late.kind, late.cause) == (1, "always", "work")
    assert late.late_ns_per_step == (400 + 3 * 10) // 4  # the usual step waits 10 for it


def test_one_hiccup_is_no_straggler() -> None:
    """However long: of many ranks it hit some one."""
    assert found(lambda rank, step: {"python": 900} if (rank, step) == (3, 4) else {}, ranks=16) is None


def test_noise_names_nobody() -> None:
    """Of many ranks one is always last, and of noisy ones by much."""
    noise = Random(1)
    drawn = {(rank, step): round(noise.gauss(0, 30)) for rank in range(64) for step in range(10)}
    assert found(lambda rank, step: {"compute": drawn[rank, step]}, ranks=64) is None
    late = found(lambda rank, step: {"compute": drawn[rank, step] + (120 if rank == 7 else 0)}, ranks=64)
    assert late is not None and (late.ranks, late.kind) == ((7,), "always")


def test_one_step_tells_no_kind() -> None:
    late = found(lambda rank, step: {"input": 90} if rank == 2 else {}, steps=1)
    assert late is not None and (late.rank, late.kind) == (2, "unclear")


@pytest.mark.parametrize("ranks", [2, 4, 64])
def test_nobody_is_late(ranks: int) -> None:
    """All vary a little."""
    assert found(lambda rank, step: {"compute": (rank * 7 + step * 13) % 11}, ranks=ranks) is None
    assert found(lambda rank, step: {}, ranks=ranks) is None


def test_more_work_that_nobody_waits_for() -> None:
    """Without collectives ranks take what time they like."""
    steps = pl.DataFrame(
        [(r, s, 0, 900 + 90 * r, 1.0) for s in range(5) for r in range(3)], schema=STEPS, orient="row"
    )
    parts = conform(steps.with_columns(part=pl.lit("compute"), ns="dur_ns"), PARTS)
    assert straggler(lateness(steps, parts), steps, parts) is None


def test_median_of_the_others() -> None:
    assert others_median([1, 2, 3]) == [2.5, 2.0, 1.5]
    assert others_median([5, 9]) == [9, 5]
    assert others_median([1, 1, 9, 1]) == [1, 1, 1, 1]


def _waits(share: float, saves: int) -> Finding:
    return Finding(
        code="exposed-collective", class_="time", title="", detail="", share=share, saves_ns_per_step=saves, speedup=Interval(2.0, 2.0, 2.0)
    )  # fmt: skip


def _told(late: int, share: float, **more: Any) -> Told:
    return Told(
        rank=1, late_ns=late, late_ns_per_step=late, share=share, last=1, matched=1, steps_late=1, steps=1, always=False, **more
    )  # fmt: skip


def test_its_time_is_no_longer_the_collectives() -> None:
    found = with_straggler([_waits(0.5, 50)], _told(30, 0.3), step_ns=100)
    assert [finding.code for finding in found] == ["straggler", "exposed-collective"]
    assert [finding.saves_ns_per_step for finding in found] == [30, 20]
    assert [round(finding.share, 6) for finding in found] == [0.3, 0.2]
    assert found[1].speedup == Interval(1.25, 1.25, 1.25)
    assert [finding.code for finding in with_straggler([_waits(0.3, 30)], _told(30, 0.3), 100)] == [
        "straggler"
    ]
    assert with_straggler([_waits(0.3, 30)], None, 100)[0].share == 0.3


def test_a_rank_that_costs_nothing_is_no_finding() -> None:
    assert [finding.code for finding in with_straggler([_waits(0.5, 50)], _told(0, 0.0), step_ns=100)] == [
        "exposed-collective"
    ]


@pytest.mark.parametrize(
    ("cause", "part", "code"),
    [
        ("input", "input", "input-bound"),
        ("python", "python", "host-python"),
        ("work", "compute", "fp32-matmul"),
        ("dispatch", "dispatch", "launch-bound"),
    ],
)
def test_the_cause_of_the_late_rank_is_no_time_of_its_own(cause: str, part: str, code: str) -> None:
    def own(rank: int, code: str) -> Finding:
        evidence = {"rank": rank}
        return Finding(code=code, class_="time", title="", detail="", evidence=evidence, saves_ns_per_step=35)

    slow = _told(30, 0.3, kind="always", cause=cause, ranks=[1], parts={part: 31})
    told = with_straggler([own(1, code), own(0, code), own(1, "memory-growth")], slow, 100)
    same = {(finding.code, finding.evidence["rank"]): finding for finding in told}
    assert same[code, 1].evidence["same_time_as"] == "straggler"
    assert same[code, 1].evidence["same_ns_per_step"] == 30
    assert "86 % of it is the same time" in same[code, 1].detail
    assert "same_time_as" not in {**same[code, 0].evidence, **same["memory-growth", 1].evidence}


@pytest.mark.parametrize(
    ("last", "steps_late", "words"),
    [
        (6, 2, "arrives last at 6 of 20 collectives, now and then, in 2 of 10 steps"),
        (18, 2, "18 of 20 collectives, mostly by little, in 2 of 10 steps by more than steps vary anyway"),
        (18, 0, "18 of 20 collectives, by little each time"),
    ],
)
def test_how_often_is_in_line_with_the_kind(last: int, steps_late: int, words: str) -> None:
    late = _told(30, 0.3, kind="sometimes", ranks=[1])
    late.last, late.matched, late.steps_late, late.steps = last, 20, steps_late, 10
    assert words in with_straggler([], late, 100)[0].detail


def test_more_work_explains_only_computing() -> None:
    """Its dispatch takes longest, and that it has more to compute is told beside."""
    late = _told(30, 0.3, kind="always", cause="work", ranks=[1], parts={"dispatch": 30}, work_ratio=2.0)
    detail = with_straggler([], late, 100)[0].detail
    assert "its dispatch takes 30 ns longer than on the other ranks." in detail


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("device_gap", "its device gaps take 30 ns longer"),
        ("copy", "its copies take 30 ns longer"),
    ],
)
def test_parts_in_words(part: str, words: str) -> None:
    late = _told(30, 0.3, kind="always", cause=part, ranks=[1], parts={part: 30})
    assert words in with_straggler([], late, 100)[0].detail


def test_larger_kernels_and_more_of_them_are_told_apart() -> None:
    """Eight times the batch in the same four kernels, and thirty launches of another one: not sixty times the blocks."""
    same = [("gemm", 8.0)] * 4
    rows = {0: same, 1: [("gemm", 64.0)] * 4 + [("extra", 100.0)] * 30, 2: same}
    tables = [
        kernel_work(
            pl.DataFrame([(*row, 0) for row in found], schema=["name", "blocks", "step"], orient="row"), rank
        )
        for rank, found in rows.items()
    ]
    found = ratios(pl.concat(tables), 1)
    assert (found.blocks, found.launches) == (8.0, 8.5)
    assert ratios(tables[1], 1) == Ratios()
    told = _told(
        30,
        0.3,
        kind="always",
        cause="work",
        ranks=[1],
        work_ratio=102.0,
        blocks_per_launch_ratio=8.0,
        launches_ratio=8.5,
    )
    finding = with_straggler([], told, 100)[0]
    assert "8.0 times the blocks of the same ones" in finding.detail and "102" not in finding.detail
    assert "launches 8.5 times as many kernels" in finding.detail
    assert finding.evidence["launches_ratio"] == 8.5


def test_words() -> None:
    """The finding says who, how often and why, and what to do about that."""
    told = _told(30, 0.3, kind="always", cause="work", ranks=[1], parts={"compute": 30}, work_ratio=2.0)
    finding = with_straggler([], told, 100)[0]
    assert finding.title == "The other ranks wait for rank 1"
    assert "in nearly every step" in finding.detail and "2.0 times the blocks" in finding.detail
    assert "because it has more to compute" in finding.detail and "batch sizes" in finding.fix
    uneven = with_straggler([], _told(30, 0.3, kind="data-dependent", ranks=[0, 1, 2]), 100)[0]
    assert uneven.title == "Ranks wait for each other: their batches are uneven"
    host = with_straggler(
        [], _told(30, 0.3, kind="always", cause="input", ranks=[1, 2, 3], parts={"input": 30}), 100
    )[0]
    assert host.title == "The other ranks wait for ranks 1–3" and "loader" in host.fix
