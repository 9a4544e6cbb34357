"""The account over all steps, on the critical device of each rank: how much went to each part, and to what by name."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.account.places import END, places
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.parts import PARTS
from stepscope.native.spans.slices import NONE, Alike
from stepscope.reports.columns import without_address
from stepscope.reports.model.report import BreakdownRow, NamedTime
from stepscope.reports.sections.section import Section
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take
from stepscope.trace.trace import Trace

NAMED_SHARE = 0.9
NAMES = 10
# Of each rank; what is left out here could not come among the first of all ranks, or hardly.
NAMES_PER_RANK = 200
_KEYS = ["part", "name", "thread", "place"]
_WORDS = ["name", "thread", "detail"]
_ORDER = ["part", "ns", "name", "thread"]


def of_rank(context: RankContext) -> pl.DataFrame:
    """part, name, thread, place, ns, detail; a row with neither name nor thread for what nothing is named for."""
    summed = _summed_slices(context.account.of_device(context.critical_device), context.trace)
    named = summed.with_columns(
        without_address("name"),
        without_address("detail"),
        thread=take(context.thread_names, summed["thread"]),
    )
    by_name = _summed(named).sort(_ORDER, descending=[False, True, False, False])
    rest = pl.int_range(pl.len()).over("part") >= NAMES_PER_RANK
    return _summed(by_name.with_columns(pl.when(~rest).then(pl.col(key)).alias(key) for key in _WORDS))


def _summed_slices(slices: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """part, name, thread, place, ns, detail. Names are compared as numbers as long as there are millions of them."""
    names = trace.events["name"]
    known = [slices[name].fill_null(NONE) for name in ("thread", "named_by", "detail")]
    alike = Alike(buffer(names.to_physical()), secrets.randbits(64) | 1)
    alike.slices(buffer(slices["part"].to_physical()), *map(buffer, known))
    rows, ns = alike.sums(buffer(slices["start_ns"]), buffer(slices["end_ns"]))
    first = slices[series("row", rows, pl.UInt32)]
    return first.select(
        "part",
        "thread",
        place=places(trace, first),
        name=take(names, first["named_by"]),
        detail=take(names, first["detail"]),
        ns=series("ns", ns, pl.Int64),
    )


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Summed by part, name, thread and place; the detail is that of most of the time."""
    ordered = rows.sort("ns", "detail", descending=[True, False])
    detail = pl.col("detail").drop_nulls().first()
    return ordered.group_by(_KEYS, maintain_order=True).agg(pl.col("ns").sum(), detail)


def joined(ranks: Sequence[pl.DataFrame], options: Options) -> Mapping[str, Any]:
    """The parts in the order of the account, those without time left out."""
    if not ranks:
        return {"breakdown": []}
    rows = _summed(pl.concat(ranks))
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
                end_ns=int(mine.filter(pl.col("place") == END)["ns"].sum()),
            )


def _names(named: pl.DataFrame, total: int, most: int) -> list[NamedTime]:
    """The longest, until they make up 90 % of the part or are ten; all where no list is to be cut."""
    enough = NAMED_SHARE * total if most == NAMES else total
    named = named.sort("ns", "name", "thread", descending=[True, False, False])
    found: list[NamedTime] = []
    reached = 0
    for name, thread, ns, detail, place in named.select(
        "name", "thread", "ns", "detail", "place"
    ).iter_rows():
        if reached >= enough or len(found) == most:
            break
        found.append(NamedTime(name=name, thread=thread, ns=ns, detail=detail, place=place))
        reached += ns
    return found


SECTION = Section("breakdown", of_rank, joined)
