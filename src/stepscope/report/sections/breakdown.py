"""The account over all steps, on the critical device of each rank: how much went to each part, and to what by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.account import PARTS
from stepscope.report.model import BreakdownRow, NamedTime
from stepscope.report.options import Options
from stepscope.report.rank import RankContext
from stepscope.report.section import Section

NAMED_SHARE = 0.9
NAMES = 10
# Of each rank; what is left out here could not come among the first of all ranks, or hardly.
NAMES_PER_RANK = 200
# Of Python's built-in methods; it is another one in each process.
_ADDRESS = r" at 0x[0-9a-f]+"
_KEYS = ["part", "name", "thread"]
_ORDER = ["part", "ns", "name", "thread"]


def of_rank(context: RankContext) -> pl.DataFrame:
    """part, name, thread, ns; a row with neither name nor thread for what nothing is named for."""
    slices = context.account.slices.filter(pl.col("device").eq_missing(context.critical_device))
    # Names are compared as numbers as long as there are millions of them.
    summed = (
        slices.lazy()
        .select(
            "part",
            "thread",
            ns=pl.col("end_ns") - pl.col("start_ns"),
            name=context.trace.events["name"].gather(slices["named_by"]),
        )
        .group_by("part", "name", "thread")
        .agg(pl.col("ns").sum())
        .collect()
    )
    named = summed.with_columns(
        name=pl.col("name").cast(pl.String).str.replace(_ADDRESS, ""),
        thread=context.thread_names.gather(summed["thread"]),
    )
    by_name = (
        named.group_by(_KEYS).agg(pl.col("ns").sum()).sort(_ORDER, descending=[False, True, False, False])
    )
    rest = pl.int_range(pl.len()).over("part") >= NAMES_PER_RANK
    folded = by_name.with_columns(pl.when(~rest).then(pl.col(key)).alias(key) for key in ("name", "thread"))
    return folded.group_by(_KEYS, maintain_order=True).agg(pl.col("ns").sum())


def joined(ranks: Sequence[pl.DataFrame], options: Options) -> Mapping[str, Any]:
    """The parts in the order of the account, those without time left out."""
    if not ranks:
        return {"breakdown": []}
    rows = pl.concat(ranks).group_by(_KEYS, maintain_order=True).agg(pl.col("ns").sum())
    total = int(rows["ns"].sum())
    return {"breakdown": list(_rows(rows, total, NAMES if options.limit else len(rows)))}


def _rows(rows: pl.DataFrame, total: int, most: int) -> Iterator[BreakdownRow]:
    for part in PARTS:
        mine = rows.filter(pl.col("part") == part)
        ns = int(mine["ns"].sum())
        if ns:
            named = mine.filter(pl.col("name").is_not_null())
            yield BreakdownRow(
                part=part,
                ns=ns,
                share=round(ns / total, 6),
                names=_names(named, ns, most),
                names_total=len(named),
                named_share=round(int(named["ns"].sum()) / ns, 6),
            )


def _names(named: pl.DataFrame, total: int, most: int) -> list[NamedTime]:
    """The longest, until they make up 90 % of the part or are ten; all where no list is to be cut."""
    enough = NAMED_SHARE * total if most == NAMES else total
    named = named.sort("ns", "name", "thread", descending=[True, False, False])
    found: list[NamedTime] = []
    reached = 0
    for name, thread, ns in named.select("name", "thread", "ns").iter_rows():
        if reached >= enough or len(found) == most:
            break
        found.append(NamedTime(name=name, thread=thread, ns=ns))
        reached += ns
    return found


SECTION = Section("breakdown", of_rank, joined)
