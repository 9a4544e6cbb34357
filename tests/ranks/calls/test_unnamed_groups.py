"""Groups that have no name are told apart by when their calls end."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest

from stepscope.ranks.calls.unnamed_groups import by_group, told_apart
from stepscope.ranks.clocks.offsets import ANCHORS

SIDE, US = 4, 1000


def _ends(
    group_of: dict[int, int], calls: int = 12, noise_us: float = 5.0, drift: float = 5e-5
) -> pl.DataFrame:
    """Of a stream whose calls each group makes at its own time; every rank has its clock."""
    chance = Random(5)
    offset = {rank: chance.uniform(-5e7, 5e7) for rank in group_of}
    drifts = {rank: chance.uniform(-drift, drift) for rank in group_of}
    rows = []
    for call in range(calls):
        ends = {group: call * 1e8 + chance.gauss(0, 300 * US) for group in sorted(set(group_of.values()))}
        for rank, group in group_of.items():
            true = ends[group] + chance.expovariate(1 / (noise_us * US))
            shown = round(true * (1 + drifts[rank]) + offset[rank])
            rows.append((call, rank, shown - 1000, shown, False, 1, 0, calls, 0))
    return pl.DataFrame(rows, schema=ANCHORS, orient="row")


@pytest.mark.parametrize("calls", [4, 12, 100])
def test_rows_of_a_grid(calls: int) -> None:
    rows = {rank: rank // SIDE for rank in range(SIDE * SIDE)}
    drift = 5e-5 if calls > 4 else 0.0
    found = told_apart(_ends(rows, calls, drift=drift))
    assert found == {(rank, 0): group * SIDE for rank, group in rows.items()}


def test_columns_of_a_grid() -> None:
    columns = {rank: rank % SIDE for rank in range(SIDE * SIDE)}
    assert told_apart(_ends(columns)) == {(rank, 0): group for rank, group in columns.items()}


def test_a_member_whose_fellow_is_missing_is_alone() -> None:
    rows = {rank: rank // 2 for rank in range(8) if rank != 5}
    assert told_apart(_ends(rows))[4, 0] == 4


@pytest.mark.parametrize("noise_us", [1.0, 20.0, 200.0])
def test_one_group_stays_one(noise_us: float) -> None:
    assert told_apart(_ends(dict.fromkeys(range(16), 0), noise_us=noise_us)) == {}


def test_named_groups_are_left_alone() -> None:
    named = _ends({rank: rank // SIDE for rank in range(16)}).with_columns(stream=pl.lit(None, pl.Int32))
    assert told_apart(named) == {}


def test_calls_of_two_groups_have_two_keys() -> None:
    ends = _ends({rank: rank // 2 for rank in range(4)})
    keys = by_group(ends, told_apart(ends), "key").group_by("key").agg(pl.col("rank").sort())
    assert {tuple(ranks) for ranks in keys["rank"].to_list()} == {(0, 1), (2, 3)}
    assert keys["key"].n_unique() == 2 * ends["key"].n_unique()
