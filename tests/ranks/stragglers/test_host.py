"""Ranks that compute and communicate on hosts: arrivals tell who is late, and what it did before them why."""

from __future__ import annotations

import polars as pl

from stepscope.ranks.stragglers.find import Straggler, straggler
from stepscope.ranks.stragglers.kernel_work import (
    CALLED,
    calls_more,
    computes_on_more,
    count_calls,
    shaped_ops,
)
from stepscope.ranks.stragglers.lateness import lateness
from stepscope.ranks.stragglers.pace import PARTS, STEPS
from stepscope.reports.model.report import Finding, Interval
from stepscope.reports.model.report import Straggler as Told
from stepscope.reports.ranks.straggler_finding import with_straggler

RANKS, STEP_COUNT = 3, 12
MARGINS = {"rank": pl.Int32, "step": pl.Int32, "margin_ns": pl.Int64}
Amounts = dict[tuple[int, int], int]  # by rank and step


def judged(
    late: Amounts, python: Amounts | None = None, compute: Amounts | None = None, has_more: bool = True
) -> Straggler | None:
    """Steps of 900 of gloo ranks: how late they came, what they did longer, and whether they had more to compute."""
    cells = [(rank, step) for step in range(STEP_COUNT) for rank in range(RANKS)]
    more = compute or {}
    steps = [(*cell, cell[1] * 1000, 900, 400.0 + (more.get(cell, 0) if has_more else 0)) for cell in cells]
    parts = [(*cell, "python", 100 + (python or {}).get(cell, 0)) for cell in cells]
    parts += [(*cell, "host_compute", 400 + more.get(cell, 0)) for cell in cells]
    parts += [(*cell, "host_collective", 400) for cell in cells]
    margins = pl.DataFrame([(*cell, late.get(cell, 0)) for cell in cells], schema=MARGINS, orient="row")
    step_table = pl.DataFrame(steps, schema=STEPS, orient="row")
    part_table = pl.DataFrame(parts, schema=PARTS, orient="row")
    return straggler(lateness(step_table, part_table, margins), step_table, part_table)


def test_what_was_done_after_the_last_collective_makes_late_in_the_next_step() -> None:
    """A checkpoint at the end of every third step."""
    late = {(2, step): 500 for step in range(3, STEP_COUNT, 3)}
    found = judged(late, python={(2, step - 1): 500 for _, step in late})
    assert found is not None and (found.rank, found.kind) == (2, "sometimes")
    assert (found.cause, found.parts, found.in_step_before) == ("python", {"python": 500}, True)


def test_what_was_done_before_the_collective_is_of_the_same_step() -> None:
    late = {(2, step): 500 for step in range(3, STEP_COUNT, 3)}
    found = judged(late, python=late)
    assert found is not None and (found.cause, found.in_step_before) == ("python", False)


def test_recorders_that_begin_one_after_the_other_make_nobody_late() -> None:
    assert judged({(2, 0): 5000}) is None
    twice = {(2, step): 500 for step in (4, 9)}
    found = judged(twice | {(2, 0): 5000}, python=twice)
    assert found is not None and (found.rank, found.late_ns, found.late_in) == (2, 1000, (4, 9))


def test_nobody_is_named_for_one_late_step_of_a_healthy_job() -> None:
    assert judged({(0, 5): 500}) is None
    assert judged({(0, step): 20 * (step % 2) for step in range(STEP_COUNT)} | {(0, 5): 300}) is None


def test_the_first_step_of_who_is_always_late_counts_as_the_others_do() -> None:
    late = {(1, step): 300 for step in range(STEP_COUNT)}
    found = judged(late | {(1, 0): 9000}, python=late)
    assert found is not None and (found.kind, found.late_ns_per_step) == ("always", 300)


def test_more_to_compute_on_a_host() -> None:
    late = {(1, step): 300 for step in range(STEP_COUNT)}
    found = judged(late, compute=late)
    assert found is not None and (found.rank, found.kind, found.cause) == (1, "always", "work")
    assert found.work_ratio == 1.75


def test_steps_in_which_another_rank_is_disturbed_do_not_make_it_cheaper() -> None:
    """Late by 300 in ten steps; in two another rank is later, so that nobody waits for it."""
    mine = {(1, step): 300 for step in range(STEP_COUNT) if step not in (4, 7)}
    more = {(1, step): 300 for step in range(STEP_COUNT)}
    found = judged(mine | {(2, step): 400 for step in (4, 7)}, compute=more)
    assert found is not None and (found.rank, found.kind, found.cause) == (1, "always", "work")
    assert found.late_ns_per_step == 300


def test_the_same_ops_but_slower() -> None:
    late = {(1, step): 300 for step in range(STEP_COUNT)}
    found = judged(late, compute=late, has_more=False)
    assert found is not None and (found.rank, found.kind, found.cause) == (1, "always", "host_compute")


def test_uneven_batches_in_turn_on_hosts() -> None:
    late = {(step % RANKS, step): 200 + 40 * (step % 5) for step in range(STEP_COUNT)}
    found = judged(late, compute=late)
    assert found is not None and (found.kind, found.cause) == ("data-dependent", "work")
    assert found.ranks == (0, 1, 2)


def test_ops_stand_for_kernels() -> None:
    calls = pl.DataFrame(
        {"name": ["mm", "mm", "view", "mm"], "step": [1, 2, 1, None], "flops": [8, 16, None, 8]}
    )
    assert shaped_ops(calls).rows() == [("mm", 1, 8.0), ("mm", 2, 16.0)]


def test_without_shapes_calls_count() -> None:
    calls = pl.DataFrame({"name": ["mm", "add", "mm"], "step": [1, 1, None], "flops": [None, None, None]})
    assert shaped_ops(calls).rows() == [("mm", 1, 1.0), ("add", 1, 1.0)]


def called(passes: dict[int, int], ns: dict[int, int]) -> pl.DataFrame:
    """By rank how often it calls a long op, and how long a call takes; there are many short ones, and waits."""
    frames = []
    for rank in range(RANKS):
        names = ["mm"] * passes.get(rank, 4) + ["view"] * 50 + ["gloo:all_reduce"]
        took = [ns.get(rank, 1000)] * passes.get(rank, 4) + [1] * 50 + [9_000]
        frames.append(count_calls(pl.DataFrame({"name": names, "step": 1, "host_self_ns": took}), rank))
    return pl.concat(frames)


def test_calls_are_counted_before_their_speed_is_blamed() -> None:
    """Seven times the passes are more work though most calls are short ones; the same calls that take longer are not."""
    assert calls_more(called({1: 28}, {}), 1)
    assert calls_more(called({1: 28}, {1: 1_300}), 1)
    assert not calls_more(called({}, {1: 7_000}), 1)
    assert not calls_more(called({1: 5}, {1: 7_000}), 1)
    assert not calls_more(called({1: 28}, {}), 0)
    assert not calls_more(called({}, {}).clear(), 1)


def finding(code: str, saves: int, **evidence: object) -> Finding:
    """One that saves so much."""
    return Finding(
        code=code, class_="time", title="", detail="", evidence=dict(evidence), share=saves / 100,
        saves_ns_per_step=saves, speedup=Interval(1.1, 1.1, 1.1), fix="",
    )  # fmt: skip


def told() -> Told:
    """Rank 0 is late now and then, by 30 of 100 a step."""
    return Told(
        rank=0, ranks=[0], late_ns=300, late_ns_per_step=30, share=0.3, last=4, matched=20, steps_late=2, steps=10,
        always=False, late_in=[4, 8], kind="sometimes", cause="io", parts={"io": 150}, in_step_before=True,
    )  # fmt: skip


def _called(product_ns: float, view_ns: float, mean_factor: float = 1.0) -> pl.DataFrame:
    """Rank 1 against two of which a product takes 100 µs and each of thirty views 2 µs."""
    rows = [
        (rank, kernel, calls, usual if rank != 1 else own * mean_factor, usual if rank != 1 else own)
        for rank in range(3)
        for kernel, calls, usual, own in ((7, 12.0, 1e5, product_ns), (8, 30.0, 2e3, view_ns))
    ]
    return pl.DataFrame(rows, schema=CALLED, orient="row")


def test_a_larger_batch_takes_longer_where_it_counts() -> None:
    """Without shapes: views take as long as those of the others, so that the host is not slow."""
    assert computes_on_more(_called(2.5e5, 2e3), 1)
    assert not computes_on_more(_called(2.5e5, 2e3), 0)


def test_a_slow_host_is_slow_in_everything() -> None:
    assert not computes_on_more(_called(2.5e5, 5e3), 1)


def test_a_host_that_is_interrupted_now_and_then_has_no_more_work() -> None:
    assert not computes_on_more(_called(1.02e5, 2e3, mean_factor=2.5), 1)


def test_a_checkpoint_that_looks_at_each_tensor_is_no_uneven_batch() -> None:
    """It calls a few ops more; what takes long is the file."""
    late = {(2, step): 500 for step in range(3, STEP_COUNT, 3)}
    found = judged(late, python=late, compute=dict.fromkeys(late, 40))
    assert found is not None and (found.kind, found.cause) == ("sometimes", "python")


def test_slow_steps_that_the_late_rank_makes_are_told_after_it_and_saved_once() -> None:
    slow = finding("step-outliers", 35, steps=[3, 4, 8], rank=1)
    found = with_straggler([slow, finding("input-bound", 50)], told(), 100)
    assert [each.code for each in found] == ["input-bound", "straggler", "step-outliers"]
    assert found[2].evidence["same_time_as"] == "straggler" and found[2].evidence["same_ns_per_step"] == 30
    assert "In the steps before those, after the last collective, its work on files takes" in found[1].detail


def test_other_slow_steps_are_their_own() -> None:
    slow = finding("step-outliers", 35, steps=[1, 6], rank=1)
    found = with_straggler([slow], told(), 100)
    assert [each.code for each in found] == ["step-outliers", "straggler"]
    assert "same_time_as" not in found[0].evidence
