"""Steps that wait for the device again and again, with about the same launches between any two waits: the turns of a loop.

No graph holds such a step as a whole, but one holds a turn, which is launched again and again: the model of a text that is written
token by token, with a look at each token behind it.
"""

from __future__ import annotations

import polars as pl

from stepscope.native.host import replay as native
from stepscope.registers.policy.findings import (
    ALIKE_TURNS,
    ALIKE_TURNS_DIFFER,
    LOOP_ITERATIONS,
    TURN_KERNELS_LEAST,
)


def kernels_of_alike_turns(items: pl.DataFrame) -> int | None:
    """How many kernels a turn launches, if nearly all kernels of these items of a plan are in turns that launch about as many."""
    turns = items.select(works=_WORKS, turn=_turn())
    sizes = turns.group_by("turn").agg(kernels=pl.col("works").sum())["kernels"].sort()
    sizes = sizes.filter(sizes > 0)
    total = int(sizes.sum())
    if not total:
        return None
    # Waits may follow one another closely: the turn of most kernels is typical, not most turns.
    typical = int(sizes.filter(sizes.cum_sum() * 2 >= total)[0])
    alike = sizes.filter((sizes.cast(pl.Int64) - typical).abs() <= ALIKE_TURNS_DIFFER * typical)
    steps = max(1, int(items["last"].sum()))
    is_loop = len(alike) >= LOOP_ITERATIONS * steps and int(alike.sum()) >= ALIKE_TURNS * total
    return typical if is_loop and typical >= TURN_KERNELS_LEAST else None


def begins_turn() -> pl.Expr:
    """Which items of a plan are the first work behind a wait, or the first of a step."""
    turn = _turn()
    before = pl.when(_WORKS).then(turn).forward_fill().shift(1)
    return _WORKS & turn.ne_missing(before)


_WORKS = pl.col("device_ns") > 0


def _turn() -> pl.Expr:
    """A number for each item, which grows by one behind each wait and each step."""
    ends = (pl.col("kind") == native.WAIT) | (pl.col("last") == 1)
    return ends.cast(pl.UInt32).shift(1, fill_value=0).cum_sum()
