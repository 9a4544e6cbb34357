"""How many blocks an optimizer's kernels on lists of tensors have, which says how many elements they update.

PyTorch does not write down lists of more than 30 tensors. A tensor takes as many blocks as it has chunks, the last one perhaps
not full: the sum over the parameters is exact where an op updates each of them once.
"""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.useless_work import UPDATED_OTHERWISE_MOST
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

UPDATED_LISTS = r"^aten::_(fused|foreach)_"
_ONCE = r"^aten::_(fused_|foreach_addcdiv_$)"  # the last op of Adam and its kin, or all of it


def updated_blocks(trace: Trace, optimizers: pl.Series) -> pl.DataFrame:
    """optimizer, name, blocks of each op on lists in these steps of optimizers; nothing where other kernels update as well."""
    events = trace.events
    around = ancestors(events, events["id"].is_in(optimizers.implode()))
    blocks = [trace.kernels["grid"].arr.get(side).cast(pl.Int64) for side in range(3)]
    kernels = (
        trace.kernels.select("event", "op")
        .with_columns(
            optimizer=around.gather(trace.kernels["op"]),
            name=events["name"].gather(trace.kernels["op"]).cast(pl.String),
            ns=events["dur_ns"].gather(trace.kernels["event"]),
            blocks=blocks[0] * blocks[1] * blocks[2],
        )
        .drop_nulls("optimizer")
    )
    lists = kernels.filter(pl.col("name").str.contains(UPDATED_LISTS))
    found = lists.group_by("optimizer", "name").agg(pl.col("blocks").sum())
    is_all = int(lists["ns"].sum()) >= (1 - UPDATED_OTHERWISE_MOST) * int(kernels["ns"].sum())
    return found if is_all else found.clear()


def blocks_once(trace: Trace, optimizers: pl.Series) -> pl.DataFrame:
    """optimizer, blocks of the op that updates each parameter once; only where one op is known to.

    Nothing where processes work together: an optimizer's tensors may be parts of parameters then.
    """
    if (trace.events["role"] == "collective").any():
        return pl.DataFrame(schema={"optimizer": pl.UInt32, "blocks": pl.Int64})
    found = updated_blocks(trace, optimizers).filter(pl.col("name").str.contains(_ONCE))
    return found.filter(pl.len().over("optimizer") == 1).select("optimizer", "blocks")
