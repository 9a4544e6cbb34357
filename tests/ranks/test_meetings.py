"""Meetings by process group: the sums of all groups are those of all meetings."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.collectives.calls import CALLS
from stepscope.ranks.arrivals import joined_meetings
from stepscope.ranks.compare import Calls, calls_of, look, meet, plan
from stepscope.ranks.meetings import add_met, groups_of, in_lanes, reduce_meetings
from stepscope.ranks.stragglers.pace import PARTS, STEPS, Pace

NO_PACE = Pace(pl.DataFrame(schema=STEPS), pl.DataFrame(schema=PARTS))
SIDE = 3


def test_lanes_of_the_same_ranks_are_a_group() -> None:
    found = groups_of({0: [1, 2, 9], 1: [1, 2, 7], 2: [2, 7], 3: []})
    assert [(group.ranks, group.lanes) for group in found] == [
        ((0, 1), (1,)),
        ((0, 1, 2), (2,)),
        ((1, 2), (7,)),
    ]


def rank_of_a_grid(rank: int) -> Calls:
    """A rank that reduces with its row, its column and all, in 40 steps; later the higher its number."""
    groups = {f"row{rank // SIDE}": SIDE, f"column{rank % SIDE}": SIDE, "all": SIDE * SIDE}
    rows = [
        {
            "event": len(groups) * step + at,
            "name": "all_reduce",
            "start_ns": 100_000 * step + 20_000 * at + 1_500 * rank * (step % 4),
            "dur_ns": 19_000 - 1_500 * rank * (step % 4),
            "step": step,
            "exposed_ns": 10,
            "bytes": 1024 * (at + 1),
            "group": group,
            "group_size": size,
            "sequence": step,
        }
        for step in range(40)
        for at, (group, size) in enumerate(groups.items())
    ]
    return calls_of(pl.DataFrame(rows, schema=CALLS), rank, NO_PACE)


def test_groups_add_up_to_all_meetings() -> None:
    ranks = [rank_of_a_grid(rank) for rank in range(SIDE * SIDE)]
    agreed = plan([look(each) for each in ranks])
    assert len(agreed.groups) == 2 * SIDE + 1
    own = {each.rank: meet(each, agreed) for each in ranks}
    parts = [
        reduce_meetings(joined_meetings([in_lanes(own[rank], group.lanes) for rank in group.ranks]))
        for group in agreed.groups
    ]
    apart, whole = add_met(parts), reduce_meetings(joined_meetings(list(own.values())))
    assert apart.count == whole.count == 40 * len(agreed.groups)
    for name in ("operations", "last", "worst"):
        assert getattr(apart, name).equals(getattr(whole, name)), name
    assert apart.lanes.sort("lane").equals(whole.lanes.sort("lane"))
    assert max(len(part.operations) for part in parts) == 1
