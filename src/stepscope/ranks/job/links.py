"""Groups of ranks whose transfers take longer than equal transfers of other groups."""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.job.model import JobModel
from stepscope.ranks.job.roles import members
from stepscope.registers.policy.job import FEWEST_LINKS, RANKS_OF_A_NODE, SLOWER_LINK
from stepscope.trace.frames import take, take_median

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
    who, texts = _members(calls, model)
    size = pl.col("bytes").log(2).round().cast(pl.Int32)
    calls = calls.with_columns(who=who, size=size, per_byte=pl.col("ns") / pl.col("bytes"))
    calls = calls.with_columns(apart=_are_apart(calls["who"], texts, model))
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
    groups, others = _spelled(slow["who"], texts), _spelled(alike["who"], texts)
    ratio = take_median(slow.select(pl.col("per_byte") / pl.col("usual")).to_series())
    return SlowLinks(tuple(groups), _common(groups, others), float(ratio), mine.select("row", ns=ns))


def _spelled(who: pl.Series, texts: list[str]) -> list[tuple[int, ...]]:
    return [tuple(map(int, text.split())) for text in sorted(texts[each] for each in who.unique())]


def _are_apart(who: pl.Series, texts: list[str], model: JobModel) -> pl.Series:
    """Whether a group spans machines: links inside of one are faster, and no measure for those between them."""
    known = all(model.hosts.values())
    node = {rank: host if known else str(rank // RANKS_OF_A_NODE) for rank, host in model.hosts.items()}
    spans = [len({node.get(int(rank)) for rank in text.split()}) > 1 for text in texts]
    return take(pl.Series(spans, dtype=pl.Boolean), who)


def _members(calls: pl.DataFrame, model: JobModel) -> tuple[pl.Series, list[str]]:
    """Which text has the ranks of each meeting: those of the groups that profiles give, else those that met."""
    ranks = list(model.roles.stage)
    pairs = calls.select("ranks_of", "group_size").drop_nulls("ranks_of").unique().iter_rows()
    known = {which: members(model.groups[which], size, ranks) for which, size in pairs}
    spelled = {which: " ".join(map(str, who)) for which, who in known.items() if who}
    is_named = pl.col("ranks_of").is_in(list(spelled)) & ~pl.col("name").is_in(["send", "recv", "send_recv"])
    rows = calls.select("meeting", "rank", "ranks_of", named=is_named.fill_null(False))
    unnamed = rows.filter(~pl.col("named")).select("meeting").unique()
    met = rows.join(unnamed, on="meeting", how="semi").group_by("meeting").agg(pl.col("rank").unique().sort())
    met = met.select("meeting", text=pl.col("rank").cast(pl.List(pl.String)).list.join(" "))
    texts = sorted({*spelled.values(), *met["text"]})
    place = {text: at for at, text in enumerate(texts)}
    numbers = pl.Series([place[text] for text in spelled.values()], dtype=pl.UInt32)
    of_group = pl.col("ranks_of").replace_strict(list(spelled), numbers, default=None, return_dtype=pl.UInt32)
    met = met.select("meeting", met=pl.Series([place[text] for text in met["text"]], dtype=pl.UInt32))
    rows = rows.join(met, on="meeting", how="left", maintain_order="left")
    return rows.select(pl.when("named").then(of_group).otherwise("met").alias("who")).to_series(), texts


def _common(slow: list[tuple[int, ...]], every: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The ranks all of whose groups are slow; where there are none, all ranks of the slow groups."""
    ranks = sorted({rank for group in slow for rank in group})
    fine = {rank for group in every if group not in slow for rank in group}
    guilty = tuple(rank for rank in ranks if rank not in fine)
    return guilty or tuple(ranks)
