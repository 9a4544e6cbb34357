"""Which of many ranks are examined in full: the others have accounts like theirs, and share their findings.

All ranks are compared, and their steps, accounts and calls are those of all. Rules, replay and tables of ops cost far more than that, and say the
same of ranks that spend their time alike: more than a few ranks are examined only until every other one is like one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import polars as pl

from stepscope.registers.policy.findings import WORTH_SHOWING
from stepscope.registers.policy.ranks import EXAMINED_RANKS
from stepscope.reports.sections.findings import OfRank
from stepscope.reports.sections.section import Section
from stepscope.reports.sections.steps import RankSteps

# Of every rank, however many there are.
OF_EVERY_RANK = ("problems", "hang", "breakdown", "regions", "steps", "memory", "collectives")
_AGAIN = "steps"  # in brief without the replay
_FINDINGS, _MEMORY = "findings", "memory"


def are_many(ranks: int) -> bool:
    """Whether only some of this number of ranks are examined in full."""
    return ranks > EXAMINED_RANKS


def asked_of_every_rank(sections: Iterable[Section]) -> list[Section]:
    """Of these sections those that need every rank."""
    return [section for section in sections if section.name in OF_EVERY_RANK]


def asked_in_full(sections: Iterable[Section]) -> list[Section]:
    """And those that some ranks answer for all."""
    return [section for section in sections if section.name not in OF_EVERY_RANK or section.name == _AGAIN]


def choose_examined(
    ranks: Sequence[int], steps: Sequence[RankSteps], told: Mapping[str, Any]
) -> dict[int, int]:
    """`like_whom` of these ranks, by what the comparison of all has `told`: the fields of the section `collectives`."""
    collectives, job = told.get("collectives"), told.get("job")
    late = collectives.straggler if collectives is not None else None
    causes = [cause.ranks[0] for cause in job.causes if cause.ranks] if job is not None else []
    stages = [role.ranks[0] for role in job.roles if role.ranks] if job is not None else []
    return like_whom(ranks, steps, [late.rank, *causes] if late is not None else causes, stages)


def like_whom(
    ranks: Sequence[int], steps: Sequence[RankSteps], named: Sequence[int] = (), stages: Sequence[int] = ()
) -> dict[int, int]:
    """For each rank the one that is examined for it; itself, if it is examined.

    After those that are named, the next one is the rank whose account differs most from those chosen before, as long as that could be a
    finding; then those of `stages` as far as there is room. A rank without steps has no account to be like another's.
    """
    accounts = _accounts(steps)
    known = accounts["rank"].to_list()
    alone = {rank: rank for rank in ranks if rank not in set(known)}
    if not known:
        return alone
    chosen = _Chosen(accounts)
    chosen.add(known[:1], named)
    chosen.add_unlike()
    chosen.add(stages)
    return alone | chosen.nearest()


class _Chosen:
    """Ranks that are examined, and how much the account of each rank differs from theirs."""

    def __init__(self, accounts: pl.DataFrame) -> None:
        self._accounts = accounts
        self._known = accounts["rank"].to_list()
        self._distances: dict[int, pl.Series] = {}

    def add(self, *wanted: Sequence[int]) -> None:
        """These ranks, as long as there is room."""
        for rank in (rank for ranks in wanted for rank in ranks if rank in self._known):
            if len(self._distances) < EXAMINED_RANKS:
                self._distances.setdefault(rank, _distance(self._accounts, rank))

    def add_unlike(self) -> None:
        """Those that differ most, one after the other."""
        while len(self._distances) < EXAMINED_RANKS:
            left = self._table().min_horizontal().to_list()
            most = max(left)
            if most <= WORTH_SHOWING:
                return
            self.add([self._known[left.index(most)]])

    def nearest(self) -> dict[int, int]:
        """For each rank the chosen one that it differs least from."""
        chosen = list(self._distances)
        of = self._table().select(pl.concat_list(pl.all()).list.arg_min()).to_series().to_list()
        return {rank: chosen[at] for rank, at in zip(self._known, of, strict=True)} | {
            rank: rank for rank in chosen
        }

    def _table(self) -> pl.DataFrame:
        return pl.DataFrame({str(rank): far for rank, far in self._distances.items()})


def _accounts(steps: Sequence[RankSteps]) -> pl.DataFrame:
    """rank, and each part of a mean step as a share of the typical one; the memory as a share of the largest."""
    rows = [(row.rank, row.duration_ns, row.parts) for each in steps for row in each.own()]
    peaks = {each.rows[0].rank: each.peak_bytes for each in steps if each.rows}
    parts = sorted({part for _, _, mine in rows for part in mine})
    schema = {"rank": pl.Int64, "ns": pl.Float64, **dict.fromkeys(parts, pl.Float64)}
    data = [(rank, ns, *(mine.get(part, 0) for part in parts)) for rank, ns, mine in rows]
    table = pl.DataFrame(data, schema=schema, orient="row").group_by("rank").mean().sort("rank")
    typical, most = table["ns"].median() or 1.0, max(peaks.values(), default=0) or 1
    memory = pl.Series(_MEMORY, [peaks[rank] / most for rank in table["rank"]], dtype=pl.Float64)
    return table.select("rank", *(pl.col(part) / typical for part in parts), memory)


def _distance(table: pl.DataFrame, rank: int) -> pl.Series:
    """By how much of a step the account of each rank differs from this one's, by the part that differs most."""
    center = table.row(by_predicate=pl.col("rank") == rank, named=True)
    return table.select(
        pl.max_horizontal((pl.col(name) - center[name]).abs() for name in table.columns[1:])
    ).to_series()


def add_examined(
    found: dict[str, list[Any]], examined: Mapping[str, list[Any]], like: Mapping[int, int]
) -> None:
    """What some ranks answered in full, beside or instead of what all did."""
    for name, answers in examined.items():
        if name == _FINDINGS:
            found[name] = shared_findings(answers, like)
        elif name == _AGAIN:
            again = {each.rows[0].rank: each for each in answers if each.rows}
            found[name] = [again.get(each.rows[0].rank, each) if each.rows else each for each in found[name]]
        else:
            found[name] = list(answers)


def shared_findings(found: Sequence[OfRank], like: Mapping[int, int]) -> list[OfRank]:
    """Those of every rank: its own, or those of the rank that was examined for it, which comes first and is quoted."""
    own = {each.rank: each for each in found}
    pairs = sorted(like.items(), key=lambda pair: (pair[0] != pair[1], pair[0]))
    return [_as_of(own[other], rank) for rank, other in pairs if other in own]


def _as_of(found: OfRank, rank: int) -> OfRank:
    if found.rank == rank:
        return found
    return replace(found, rank=rank, found=[msgspec.structs.replace(each) for each in found.found])
