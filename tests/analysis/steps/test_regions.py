"""Regions are steps that do not touch: time between them is in no step, no account and no replay."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.steps.find import Steps, find_steps
from stepscope.analysis.steps.regions import agree_on_region, choose_region, region_of_steps
from stepscope.trace.trace import Trace
from tests.builders.inline import US, trace_of

# Collecting takes 40, training 10, and between the passes 100 each.
TWO = """
    track     start  dur  name              kind        launches
    main          0   40  ProfilerStep#0    annotation  -
    main        140   10  ProfilerStep#1    annotation  -
    main        142    2  cudaLaunchKernel  runtime     gemm
    stream 7    144   20  gemm              kernel      -
    main        250   40  ProfilerStep#2    annotation  -
    main        390   10  ProfilerStep#3    annotation  -
    main        392    2  cudaLaunchKernel  runtime     gemm
    stream 7    394   20  gemm              kernel      -
    """
NOTED = {"names": ["collect", "train"], "first": 0, "passes": 4, "which": [0, 1, 0, 1]}


def two(noted: Any = NOTED) -> Trace:
    return trace_of(TWO, capture={"regions": noted, "last_step": 3})


def windows(found: Steps) -> list[tuple[int, int, int]]:
    rows = found.windows.select("step", pl.col("start_ns") // US, pl.col("end_ns") // US)
    return [tuple(row) for row in rows.iter_rows()]


def test_each_region_has_its_own_steps_that_end_with_their_work() -> None:
    assert windows(find_steps(two(), "train")) == [(1, 140, 164), (3, 390, 414)]
    assert windows(find_steps(two(), "collect")) == [(0, 0, 40), (2, 250, 290)]


def test_the_longest_region_is_shown_unless_another_is_asked_for() -> None:
    found = find_steps(two())
    assert (found.region, found.regions, found.source) == ("collect", ("collect", "train"), "marker")
    assert find_steps(two(), "tr.*").region == "train"
    assert find_steps(two(), "evaluate").region is None


@pytest.mark.parametrize(
    ("ranks", "agreed"),
    [
        ([], None),
        ([{}, {}], None),
        ([{"train": 30, "collect": 10}, {"collect": 25, "train": 10}], "train"),
        ([{"collect": 30, "train": 10}, {"train": 10}], "train"),  # all have it
        ([{"b": 10}, {"a": 10}], "a"),
    ],
)
def test_ranks_agree_on_one_region(ranks: list[dict[str, int]], agreed: str | None) -> None:
    assert agree_on_region(ranks) == agreed


def test_a_rank_without_the_agreed_region_shows_its_longest() -> None:
    assert find_steps(two(), agreed="train").region == "train"
    assert find_steps(two(), agreed="evaluate").region == "collect"
    assert find_steps(two(), "collect", agreed="train").region == "collect"


def test_the_account_has_nothing_of_the_time_between_passes() -> None:
    trace = two()
    parts = account(trace, find_steps(trace, "train")).parts
    lengths = parts.group_by("step").agg(pl.col("ns").sum()).sort("step")["ns"].to_list()
    assert lengths == [24 * US, 24 * US]
    assert parts.filter(pl.col("part") == "compute")["ns"].to_list() == [20 * US, 20 * US]


def test_the_replay_has_nothing_of_it_either() -> None:
    context = RankContext(0, two(), Options(step_name="train"))
    assert context.plan.as_recorded().step_ns() == pytest.approx(24 * US, rel=0.1)


def test_events_of_other_regions_belong_to_no_step() -> None:
    context = RankContext(0, two(), Options(step_name="train"))
    assert context.trace.events["step"].drop_nulls().unique().sort().to_list() == [1, 3]
    assert len(context.kernel_calls) == 2


def test_windows_stay_apart_where_work_of_one_pass_reaches_into_the_next() -> None:
    text = """
        track     start  dur  name              kind        launches
        main          0   10  ProfilerStep#0    annotation  -
        main          2    2  cudaLaunchKernel  runtime     long
        stream 7      4   56  long              kernel      -
        main         50   40  ProfilerStep#1    annotation  -
        """
    noted = {"names": ["a", "b"], "first": 0, "which": [0, 1]}
    trace = trace_of(text, capture={"regions": noted, "last_step": 1})
    assert windows(find_steps(trace, "a")) == [(0, 0, 60)]
    assert windows(find_steps(trace, "b")) == [(1, 60, 90)]


@pytest.mark.parametrize(
    "noted",
    [
        None,
        [],
        "regions",
        {},
        {"names": "ab", "first": 0, "which": [0]},
        {"names": ["a"], "first": "0", "which": [0]},
        {"names": ["a"], "first": 0, "which": [7, None, "x", -1]},
        {"names": ["a"], "first": 2**40, "which": [0]},
    ],
)
def test_a_damaged_note_is_no_regions(noted: Any) -> None:
    trace = two(noted)
    assert region_of_steps(trace).is_empty()
    assert find_steps(trace).region is None
    assert len(find_steps(trace).host) == 4


def test_a_pattern_that_is_none_chooses_nothing() -> None:
    assert choose_region(["train"], "tr(") is None
