"""What is wrong in one process group: the first collective that not all members called, or not all called alike."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.hangs.groups import Group

# Collectives whose tensors may differ from rank to rank: the root of a scatter has all, the others a part.
_UNEVEN = r"_?(all_?to_?all|gatherv?|scatterv?|all_?gather_v|reduce_scatter_v)|coalesced|barrier|split"


@dataclass(frozen=True)
class Verdict:
    """`kind`: absent, op, size, dtype, device or stuck. `culprits` did not come, or came with another call; `waiting` wait for them."""

    group: Group
    kind: str
    sequence: int
    waiting: tuple[int, ...]
    culprits: tuple[int, ...]
    began_ns: int | None
    calls: pl.DataFrame  # that call on each rank which made it
    how: str = ""  # of `op`: order, skipped, extra, or empty where that is not known


def judge(group: Group) -> Verdict | None:
    """None where nothing is pending, and nothing has failed."""
    calls = group.calls.filter(~pl.col("is_p2p")).unique(
        ["rank", "sequence"], keep="first", maintain_order=True
    )
    calls = calls.with_columns(is_last=pl.col("sequence") == pl.col("sequence").max().over("rank"))
    pending = calls.filter("is_pending")
    # A call of gloo that failed because another rank is gone is retired, too.
    ended = calls.filter("is_last", pl.col("state") != "completed")
    numbers = (ended if pending.is_empty() else pending)["sequence"].unique().sort()
    differing = _find_differing(calls.filter(pl.col("sequence").is_in(numbers.implode())))
    absent = _find_absent(calls, numbers, group.members)
    if differing is not None and (absent is None or differing[0] <= absent[0]):
        return _describe(group, calls, *differing)
    if absent is not None:
        return _describe(group, calls, absent[0], "absent", absent[1])
    if pending.is_empty():
        return None
    number = int(numbers[0])
    idle = _find_not_started(calls.filter(pl.col("sequence") == number))
    return _describe(group, calls, number, "device" if idle else "stuck", idle)


def _find_not_started(calls: pl.DataFrame) -> list[int]:
    """Ranks whose device has not begun what those of others have: something before it does not end."""
    has_begun = calls["state"].is_in(["started", "completed"])
    return [] if has_begun.all() or not has_begun.any() else calls.filter(~has_begun)["rank"].to_list()


def _describe(
    group: Group, calls: pl.DataFrame, sequence: int, kind: str, culprits: Collection[int]
) -> Verdict:
    made = calls.filter(pl.col("sequence") == sequence)
    waiting = made.filter(~pl.col("rank").is_in(list(culprits)), pl.col("is_pending") | pl.col("is_last"))
    began = waiting["created_ns"].min()
    return Verdict(
        group,
        kind,
        sequence,
        tuple(waiting["rank"].sort().to_list()),
        tuple(sorted(culprits)),
        None if began is None else int(str(began)),
        made,
        _compare_order(calls, sequence, culprits) if kind == "op" else "",
    )


def _find_differing(calls: pl.DataFrame) -> tuple[int, str, list[int]] | None:
    """The first number whose calls differ, in what, and on which ranks: those of the smaller part."""
    uneven = pl.col("op").str.contains(f"^(?:{_UNEVEN})")
    signs = {
        "op": pl.col("op"),
        "size": pl.when(~uneven)
        .then(pl.concat_str("input_sizes", pl.lit(" to "), "output_sizes"))
        .otherwise(pl.lit("")),
        "dtype": pl.col("dtypes"),
    }
    signed = calls.with_columns(**signs)
    for (sequence,), rows in signed.sort("sequence").group_by("sequence", maintain_order=True):
        for kind in signs:
            if rows[kind].n_unique() > 1:
                return int(str(sequence)), kind, _list_minority(rows, kind)
    return None


def _list_minority(rows: pl.DataFrame, kind: str) -> list[int]:
    """All ranks but those of the most frequent call; of two that are as frequent, the one of the lower rank counts as usual."""
    sizes = rows.group_by(kind).agg(count=pl.len(), first=pl.col("rank").min())
    usual = sizes.sort(["count", "first"], descending=[True, False])[kind][0]
    return sorted(rows.filter(pl.col(kind) != usual)["rank"].to_list())


def _find_absent(
    calls: pl.DataFrame, numbers: pl.Series, members: Collection[int]
) -> tuple[int, list[int]] | None:
    """The first number that members have not reached. What a full buffer has dropped was reached."""
    reached = dict(calls.group_by("rank").agg(pl.col("sequence").max()).iter_rows())
    for sequence in numbers:
        behind = [rank for rank in members if reached.get(rank, -1) < sequence]
        if behind:
            return int(sequence), behind
    return None


def _compare_order(calls: pl.DataFrame, sequence: int, culprits: Collection[int]) -> str:
    """What the first culprit did instead, where later calls of both sides show it."""
    later = calls.filter(pl.col("sequence") >= sequence).sort("sequence")
    own = later.filter(pl.col("rank") == min(culprits))["op"].to_list()
    others = later.filter(~pl.col("rank").is_in(list(culprits)))
    if others.is_empty():
        return ""
    usual = others.filter(pl.col("rank") == others["rank"].min())["op"].to_list()
    if usual[0] in own[1:] and own[0] in usual[1:]:
        return "order"
    if own[0] in usual[1:]:
        return "skipped"
    return "extra" if usual[0] in own[1:] else ""
