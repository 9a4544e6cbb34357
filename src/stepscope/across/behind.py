"""What ranks did in steps, against what the others did in the same ones: the reasons for being late."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from math import sqrt
from statistics import median

import polars as pl

from stepscope.across.lateness import COLLECTIVE
from stepscope.across.pace import BESIDE
from stepscope.across.student import MANY, quantile

At = Collection[tuple[int, int]]  # steps and ranks
MORE_WORK = 1.1  # times the blocks of the others: below, padding and rounding make as much
_GREW_WITH = 0.5  # of the growth in time, growth in blocks that explains it
_ALIKE = 0.25  # a larger batch is larger in each step by as much
_SLOWER_CLOCK = 0.95
_BLOCKS = "blocks"
_DID = "did "
_CHANCE = 0.05
_TO_SIGMA = 1.2533  # of a mean distance
_BY_HOST = ("input", "python", "dispatch", "io", "compile", "unexplained")


class Behind:
    """Parts of the account and blocks of kernels of some ranks beside the median of all others.

    `did` is what their hosts did, seen or not. While the others wait in a collective, their hosts go on and hide what they do
    there; the late one's host does not, and all of it shows. What it did no longer than they is not what made it late.
    """

    def __init__(
        self,
        steps: pl.DataFrame,
        parts: pl.DataFrame,
        clocks_mhz: Mapping[int, float | None],
        did: pl.DataFrame | None = None,
    ) -> None:
        work = steps.select("rank", "step", part=pl.lit(_BLOCKS), ns=_BLOCKS)
        times = [_filled(steps, parts)]
        if did is not None and len(did):
            whole = _filled(steps.join(did, on=["rank", "step"], how="semi"), did)
            times.append(whole.with_columns(part=_DID + pl.col("part")))
        numbers = [frame.with_columns(pl.col("ns").cast(pl.Float64)) for frame in times]
        self._rows = pl.concat([*numbers, work]).drop_nulls("ns")
        self._clocks = clocks_mhz
        self.knows_what_was_done = len(times) > 1
        self._known: dict[int, dict[tuple[int, str], tuple[float, float]]] = {}

    def _of(self, rank: int) -> dict[tuple[int, str], tuple[float, float]]:
        """By step and part: the rank's figure and the median of the others'."""
        if rank not in self._known:
            mine = self._rows.filter(pl.col("rank") == rank)
            others = self._rows.filter(pl.col("rank") != rank).join(mine, on=["step", "part"], how="semi")
            typical = others.group_by("step", "part").agg(typical=pl.col("ns").median())
            pairs = mine.join(typical, on=["step", "part"]).select("step", "part", "ns", "typical")
            self._known[rank] = {(step, part): (ns, usual) for step, part, ns, usual in pairs.iter_rows()}
        return self._known[rank]

    def longer(self, at: At) -> dict[str, int]:
        """For each part of the account what it took longer than on the others, per step and rank; the most first."""
        return _told(self._more(at))

    def did_longer(self, at: At) -> dict[str, int]:
        """The same, but what the host did no more than it did it longer, and by more than hosts vary; nothing where that is not known."""
        if not self.knows_what_was_done:
            return {}
        sums, before = self._more(at), self._more({(step - 1, rank) for step, rank in at})
        # What a host that runs ahead did longer in the step before shows in this one.
        did = {part: max(each.get(_DID + part, 0.0) for each in (sums, before)) for part in _BY_HOST}
        host = {part: min(sums[part], max(0.0, did[part])) for part in _BY_HOST if part in sums}
        if sum(max(0.0, ns) for ns in host.values()) <= self._by_chance_ns(len({step for step, _ in at})):
            host = {part: min(0.0, ns) for part, ns in host.items()}
        return _told(sums | host)

    def _more(self, at: At) -> dict[str, float]:
        """By part, the mean of what these took longer."""
        sums: dict[str, float] = {}
        for step, rank in at:
            for (when, part), (mine, others) in self._of(rank).items():
                if when == step and part != _BLOCKS:
                    sums[part] = sums.get(part, 0.0) + (mine - others) / len(at)
        return sums

    def _by_chance_ns(self, steps: int) -> float:
        """How much longer than the others the host of some rank does things, in the mean of so many steps, once in twenty times."""
        spread, ranks, all_steps = self._hosts
        tries = ranks * max(1.0, all_steps / max(1, steps))
        return quantile(2 * _CHANCE / tries, MANY) * spread / sqrt(max(1, steps))

    @cached_property
    def _hosts(self) -> tuple[float, int, int]:
        """What hosts take differs by from step to step, beside the others, in the usual case; how many ranks and steps."""
        mine = pl.col("part").is_in([_DID + part for part in _BY_HOST])
        whole = self._rows.filter(mine).group_by("rank", "step").agg(pl.col("ns").sum())
        apart = whole.with_columns(ns=pl.col("ns") - pl.col("ns").median().over("step"))
        steps = apart["step"].n_unique()
        off = (pl.col("ns") - pl.col("ns").mean()).abs().mean()
        spread = apart.group_by("rank").agg(off=off)["off"].median() if steps > 1 else 0.0
        scale = _TO_SIGMA * sqrt(steps / max(1, steps - 1))
        return scale * float(spread or 0.0), whole["rank"].n_unique(), steps  # type: ignore[arg-type]

    def had_more_work(self, at: At) -> bool:
        """Whether more blocks explain the time that computing took longer there."""
        blocks = sum(self._growth(step, rank, _BLOCKS) for step, rank in at)
        time = sum(self._growth(step, rank, "compute") for step, rank in at)
        return blocks > 0 and time > 0 and blocks >= _GREW_WITH * time

    def more_work_ns(self, rank: int) -> int:
        """How much longer it computes in each step, if it has more to compute in all steps alike; else 0."""
        steps = sorted({step for step, _ in self._of(rank)})
        growth = [self._growth(step, rank, _BLOCKS) for step in steps]
        typical = median(growth) if growth else 0.0
        varies = median(abs(each - typical) for each in growth) if growth else 0.0
        at = [(step, rank) for step in steps]
        if typical < MORE_WORK - 1 or varies > _ALIKE * typical or not self.had_more_work(at):
            return 0
        return max(0, self.longer(at).get("compute", 0))

    def uneven(self, rank: int) -> bool:
        """Whether it has more to compute, in each step by another amount."""
        steps = sorted({step for step, _ in self._of(rank)})
        growth = [self._growth(step, rank, _BLOCKS) for step in steps]
        typical = median(growth) if growth else 0.0
        varies = median(abs(each - typical) for each in growth) if growth else 0.0
        return varies > _ALIKE * abs(typical) and self.had_more_work([(step, rank) for step in steps])

    def work_ratio(self, rank: int) -> float | None:
        """Blocks of the rank's kernels to those of the others, over all steps."""
        pairs = list(self._pairs(rank, _BLOCKS))
        others = sum(typical for _, typical in pairs)
        return sum(mine for mine, _ in pairs) / others if others else None

    def cause(self, parts: Mapping[str, int], at: At, worst: int) -> str | None:
        """The part that took longer most of all, told more exactly if it is compute."""
        first = next((part for part, ns in parts.items() if ns > 0), None)
        if first != "compute":
            return first
        if self.had_more_work(at):
            return "work"
        mine = self._clocks.get(worst)
        others = sorted(mhz for rank, mhz in self._clocks.items() if mhz is not None and rank != worst)
        slower = mine is not None and others and mine < _SLOWER_CLOCK * others[len(others) // 2]
        return "clock" if slower else "compute"

    def _pairs(self, rank: int, part: str) -> Iterator[tuple[float, float]]:
        return (pair for (_, name), pair in self._of(rank).items() if name == part)

    def _growth(self, step: int, rank: int, part: str) -> float:
        mine, others = self._of(rank).get((step, part), (0.0, 0.0))
        return mine / others - 1 if others else 0.0


def _told(sums: Mapping[str, float]) -> dict[str, int]:
    """Without waits, without what is nothing; the most first."""
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    waits = (*COLLECTIVE, BESIDE)
    return {
        part: round(ns)
        for part, ns in ranked
        if part not in waits and not part.startswith(_DID) and round(ns)
    }


def _filled(steps: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Parts with a 0 where a rank spent no time in one that others have."""
    names = parts.select("part").unique()
    every = steps.select("rank", "step").join(names, how="cross")
    return every.join(parts, on=["rank", "step", "part"], how="left").with_columns(pl.col("ns").fill_null(0))
