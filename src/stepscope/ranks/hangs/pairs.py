"""Sends and receives that wait for each other's rank. Numbers differ between ranks, so what is pending is paired by its ends."""

from __future__ import annotations

import polars as pl

from stepscope.ranks.hangs.groups import Group
from stepscope.ranks.hangs.verdict import Verdict


def judge_pairs(group: Group) -> list[Verdict]:
    """A verdict for each pair of ranks between which something is pending."""
    ends = pl.col("from_rank").is_not_null(), pl.col("to_rank").is_not_null()
    waiting = group.calls.filter("is_p2p", "is_pending", *ends).sort("record")
    first = waiting.unique(["rank", "op", "from_rank", "to_rank"], keep="first", maintain_order=True)
    found = []
    for (origin, target), rows in first.group_by("from_rank", "to_rank", maintain_order=True):
        pair = _global_rank(group, int(str(origin))), _global_rank(group, int(str(target)))
        found.append(_judge_pair(group, rows, pair))
    return found


def _global_rank(group: Group, number: int) -> int:
    """A dump numbers the ends of a transfer within the group."""
    return group.members[number] if number < len(group.members) else number


def _judge_pair(group: Group, rows: pl.DataFrame, pair: tuple[int, int]) -> Verdict:
    here = rows["rank"].unique().sort().to_list()
    absent = tuple(rank for rank in pair if rank not in here)
    began = rows["created_ns"].min()
    kind, culprits = ("absent", absent) if absent else ("stuck", ())
    if not absent and _count_sizes(rows) > 1:
        kind, culprits = "size", (pair[1],)
    return Verdict(
        group,
        kind,
        int(rows["sequence"][0]),
        tuple(rank for rank in here if rank not in culprits),
        culprits,
        None if began is None else int(str(began)),
        rows,
    )


def _count_sizes(rows: pl.DataFrame) -> int:
    """What one sends and the other expects."""
    passed = pl.when(pl.col("op").str.contains("recv")).then("output_sizes").otherwise("input_sizes")
    return rows.select(passed).to_series().n_unique()
