"""What ranks did in steps, against what the others did in the same ones: the reasons for being late."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from statistics import median

import polars as pl

from stepscope.ranks.stragglers.lateness import COLLECTIVE
from stepscope.ranks.stragglers.pace import BESIDE
from stepscope.registers.policy.ranks import ALIKE_GROWTH, GREW_WITH, MORE_WORK, SLOWER_CLOCK

At = Collection[tuple[int, int]]  # steps and ranks
_BLOCKS = "blocks"
_DID = "did "
COMPUTE = ("compute", "host_compute")
_BY_HOST = ("input", "python", "dispatch", "allocator", "io", "compile", "unexplained")
# Waits for others, and what was not recorded: of some ranks the first step has work from before the recording.
_NO_REASON = (*COLLECTIVE, BESIDE, "unrecorded")


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
        # Where no device computes, all parts are of the host.
        self.is_of_hosts = not (parts["part"] == "compute").any()
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
        """The same, but what the host did no more than it did it longer; nothing where that is not known."""
        sums = self._more(at)
        if not any(part.startswith(_DID) for part in sums):
            return {}
        did = {
            part: min(sums[part], max(0.0, sums.get(_DID + part, 0.0))) for part in _BY_HOST if part in sums
        }
        return _told(sums | did)

    def _more(self, at: At) -> dict[str, float]:
        """By part, the mean of what these took longer."""
        sums: dict[str, float] = {}
        for step, rank in at:
            for (when, part), (mine, others) in self._of(rank).items():
                if when == step and part != _BLOCKS:
                    sums[part] = sums.get(part, 0.0) + (mine - others) / len(at)
        return sums

    def had_more_work(self, at: At) -> bool:
        """Whether more blocks explain the time that computing took longer there."""
        blocks = sum(self._growth(step, rank, _BLOCKS) for step, rank in at)
        time = sum(self._growth(step, rank, *COMPUTE) for step, rank in at)
        return blocks > 0 and time > 0 and blocks >= GREW_WITH * time

    def computes_longer(self, at: At) -> bool:
        """Whether computing is what took longer there most of all, and not, say, a file that it writes."""
        return next(iter(self.longer(at)), None) in COMPUTE

    def more_work_ns(self, rank: int) -> int:
        """How much longer it computes in each step, if it has more to compute in all steps alike; else 0."""
        at, typical, varies = self._more_blocks(rank)
        if typical < MORE_WORK - 1 or varies > ALIKE_GROWTH * typical or not self.had_more_work(at):
            return 0
        longer = self.longer(at)
        return max(0, sum(longer.get(part, 0) for part in COMPUTE))

    def uneven(self, rank: int) -> bool:
        """Whether it has more to compute, in each step by another amount."""
        at, typical, varies = self._more_blocks(rank)
        return varies > ALIKE_GROWTH * abs(typical) and self.had_more_work(at)

    def _more_blocks(self, rank: int) -> tuple[At, float, float]:
        """The rank's steps, by what share it has more to compute in the typical one, and how much that varies."""
        steps = sorted({step for step, _ in self._of(rank)})
        growth = [self._growth(step, rank, _BLOCKS) for step in steps]
        typical = median(growth) if growth else 0.0
        varies = median(abs(each - typical) for each in growth) if growth else 0.0
        return [(step, rank) for step in steps], typical, varies

    def work_ratio(self, rank: int) -> float | None:
        """Blocks of the rank's kernels to those of the others, over all steps."""
        pairs = list(self._pairs(rank, _BLOCKS))
        others = sum(typical for _, typical in pairs)
        return sum(mine for mine, _ in pairs) / others if others else None

    def cause(self, parts: Mapping[str, int], at: At, worst: int) -> str | None:
        """The part that took longer most of all, with more detail if it is compute."""
        first = next((part for part, ns in parts.items() if ns > 0), None)
        if first not in COMPUTE:
            return first
        if self.had_more_work(at):
            return "work"
        if first != "compute":
            return first
        mine = self._clocks.get(worst)
        others = sorted(mhz for rank, mhz in self._clocks.items() if mhz is not None and rank != worst)
        slower = mine is not None and others and mine < SLOWER_CLOCK * others[len(others) // 2]
        return "clock" if slower else "compute"

    def _pairs(self, rank: int, part: str) -> Iterator[tuple[float, float]]:
        return (pair for (_, name), pair in self._of(rank).items() if name == part)

    def _growth(self, step: int, rank: int, *parts: str) -> float:
        pairs = [self._of(rank).get((step, part), (0.0, 0.0)) for part in parts]
        mine, others = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        return mine / others - 1 if others else 0.0


def _told(sums: Mapping[str, float]) -> dict[str, int]:
    """Without waits and what was not recorded, without zeros; the most first."""
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return {
        part: round(ns)
        for part, ns in ranked
        if part not in _NO_REASON and not part.startswith(_DID) and round(ns)
    }


def _filled(steps: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Parts with a 0 where a rank spent no time in one that others have."""
    names = parts.select("part").unique()
    every = steps.select("rank", "step").join(names, how="cross")
    return every.join(parts, on=["rank", "step", "part"], how="left").with_columns(pl.col("ns").fill_null(0))
