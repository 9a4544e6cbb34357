"""Groups of ranks whose transfers take longer than equal transfers of other groups."""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.job.model import JobModel
from stepscope.ranks.job.roles import members
from stepscope.registers.policy.job import FEWEST_LINKS, RANKS_OF_A_NODE, SLOWER_LINK
from stepscope.trace.frames import take_median

_ALIKE = ("name", "group_size", "size", "apart")
_OF_CALLS = ("row", "rank", "name", "group_size", "ranks_of", "bytes", "meeting", "ns")


@dataclass(frozen=True)
class SlowLinks:
    """`groups` are slow by the median `ratio`; `ranks` are those that are in more of them than the others are."""

    groups: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...]
    ratio: float
    change: pl.DataFrame  # row, ns: with the usual transfers of equal groups


def slow_links(model: JobModel) -> SlowLinks | None:
    """The groups that are slow, if any are; `bytes` within a factor of two are taken to be as large."""
    calls = model.calls.select(_OF_CALLS).filter(pl.col("meeting").is_not_null() & (pl.col("bytes") > 0))
    who = _members(calls, model)
    size = pl.col("bytes").log(2).round().cast(pl.Int32)
    calls = calls.with_columns(who=who, size=size, per_byte=pl.col("ns") / pl.col("bytes"))
    calls = calls.with_columns(apart=_are_apart(calls["who"], model))
    calls = calls.with_columns(pl.col("name").replace({"recv": "send"}))
    typical = calls.group_by(*_ALIKE, "who").agg(pl.col("per_byte").median())
    # Of two or four groups, of which half are slow, the others are usual.
    lower_middle = pl.col("per_byte").sort().get((pl.len() - 1) // 2)
    usual = typical.with_columns(usual=lower_middle.over(_ALIKE), groups=pl.len().over(_ALIKE))
    slow = usual.filter(pl.col("groups") >= FEWEST_LINKS, pl.col("per_byte") > SLOWER_LINK * pl.col("usual"))
    if slow.is_empty():
        return None
    mine = calls.join(slow.select(*_ALIKE, "who", "usual"), on=[*_ALIKE, "who"], nulls_equal=True)
    ns = pl.min_horizontal("ns", (pl.col("usual") * pl.col("bytes")).round().cast(pl.Int64))
    alike = usual.join(slow, on=_ALIKE, how="semi", nulls_equal=True)
    groups = [tuple(map(int, text.split())) for text in slow["who"].unique().sort()]
    others = [tuple(map(int, text.split())) for text in alike["who"].unique().sort()]
    ratio = take_median(slow.select(pl.col("per_byte") / pl.col("usual")).to_series())
    return SlowLinks(tuple(groups), _common(groups, others), float(ratio), mine.select("row", ns=ns))


def _are_apart(who: pl.Series, model: JobModel) -> pl.Series:
    """Whether a group spans machines: links inside of one are faster, and no measure for those between them."""
    known = all(model.hosts.values())
    node = {rank: host if known else str(rank // RANKS_OF_A_NODE) for rank, host in model.hosts.items()}
    texts = who.unique().to_list()
    spans = [len({node.get(int(rank)) for rank in text.split()}) > 1 for text in texts]
    apart: pl.Series = who.replace_strict(texts, spans, return_dtype=pl.Boolean)
    return apart


def _members(calls: pl.DataFrame, model: JobModel) -> pl.Series:
    """The ranks of each meeting, as text; of the groups that profiles give, else of those that met."""
    ranks = list(model.roles.stage)
    pairs = calls.select("ranks_of", "group_size").drop_nulls("ranks_of").unique().iter_rows()
    known = {which: members(model.groups[which], size, ranks) for which, size in pairs}
    spelled = {which: " ".join(map(str, who)) for which, who in known.items() if who}
    named = pl.col("ranks_of").replace_strict(
        list(spelled), list(spelled.values()), default=None, return_dtype=pl.String
    )
    paired = pl.col("name").is_in(["send", "recv", "send_recv"])
    rows = calls.select("meeting", "rank", who=pl.when(~paired).then(named))
    unnamed = rows.filter(pl.col("who").is_null())
    if unnamed.is_empty():
        return rows["who"]
    mine = unnamed.select(pl.col("meeting").unique())
    met = rows.join(mine, on="meeting", how="semi").group_by("meeting").agg(pl.col("rank").unique().sort())
    texts = met.select("meeting", met=pl.col("rank").cast(pl.List(pl.String)).list.join(" "))
    rows = rows.join(texts, on="meeting", how="left", maintain_order="left")
    return rows.select(who=pl.coalesce("who", "met")).to_series()


def _common(slow: list[tuple[int, ...]], every: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The ranks all of whose groups are slow; where there are none, all ranks of the slow groups."""
    ranks = sorted({rank for group in slow for rank in group})
    fine = {rank for group in every if group not in slow for rank in group}
    guilty = tuple(rank for rank in ranks if rank not in fine)
    return guilty or tuple(ranks)
