"""How far the clock of each rank is from that of the first, by collectives that all ranks leave at the same moment.

Only all-reduces and barriers count. Offsets spread from the first rank over shared calls, and are refined together with the drifts
by `clock_lines`. What differs between ranks in every call alike cannot be distinguished from an offset: no method without a second
clock can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.calls.matching import KEY, TOGETHER
from stepscope.ranks.clocks.fit import lines_of
from stepscope.ranks.clocks.shared import Machine, shared_clocks
from stepscope.registers.levels import MOST_ANCHORS, OFFSET_SIGMA
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import conform, take_smallest

ANCHORS = {
    "key": pl.UInt64,
    "rank": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "on_host": pl.Boolean,
    "lane": pl.UInt64,
    "place": pl.Int32,
    "calls": pl.UInt32,
    "stream": pl.Int32,
}


@dataclass(frozen=True)
class Clock:
    """`offset_ns`: how far the rank's clock is ahead in the middle of the recording; `residual_ns` is the median error left.

    `error_ns` is the standard error of the offset, from the residual and the number of anchors. A rank without a
    shared all-reduce has no anchors, is not aligned, and is taken as recorded.
    """

    rank: int
    offset_ns: int = 0
    drift: float = 0.0
    residual_ns: int | None = None
    error_ns: int | None = None
    anchors: int = 0
    part: int = 0  # ranks of the same part have clocks that can be compared
    middle_ns: int = 0

    @property
    def aligned(self) -> bool:
        """Whether collectives determined the offset."""
        return self.anchors > 0

    def common(self, column: str) -> pl.Expr:
        """The time by the first rank's clock."""
        time = pl.col(column)
        bent = (time - self.offset_ns - self.middle_ns).cast(pl.Float64) * self.drift
        return time - self.offset_ns - bent.round().cast(pl.Int64)


def anchors(rows: pl.DataFrame) -> pl.DataFrame:
    """The ends that may determine a clock, of the rows of `keyed`; evenly thinned where there are many.

    Thinned by the key, so that all ranks keep the same ones.
    """
    fit = rows.filter(pl.col("name").is_in(TOGETHER) & (pl.col("dur_ns") > 0))
    found = fit.select(
        *("lane", "place", "rank", "start_ns", "on_host", "stream"),
        calls=pl.len().over("lane", "place"),
        key=_one_key(),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
    ).select(*ANCHORS)
    every = len(found) // MOST_ANCHORS + 1
    kept = 1 << (every - 1).bit_length() if every > 1 else 1
    return conform(found.filter(pl.col("key") % kept == 0), ANCHORS)


def _one_key() -> pl.Expr:
    """The four columns of a key in one number, by multiplications that wrap around."""
    lane, place, number, again = (pl.col(name).cast(pl.Int64, wrap_numerical=True) for name in KEY)
    mixed = lane + place * 1_000_003 + number * 7_046_029_254_386_353 + again * 97_531
    return mixed.cast(pl.UInt64, wrap_numerical=True)


def fit_clocks(
    found: pl.DataFrame, ranks: Sequence[int], machines: Mapping[int, Machine | None] | None = None
) -> dict[int, Clock]:
    """The clocks of these ranks by the anchors of all of them; `machines` says which ranks may share one."""
    shared = found.filter(pl.col("rank").n_unique().over("key") > 1)
    shared = shared.unique(["key", "rank"], keep="none", maintain_order=True)
    if shared.is_empty():
        return {rank: Clock(rank, part=rank) for rank in ranks}
    origin = take_smallest(shared["end_ns"])
    same = shared_clocks(shared, machines or {})
    counts = dict(shared.group_by("rank").len().iter_rows())
    lead = pl.col("rank").replace(same)
    rows = shared.select("key", rank=lead, y=(pl.col("end_ns") - origin).cast(pl.Float64))
    rows = rows.sort("key", "rank", "y")
    first = _spread(rows)
    middle = _middle(rows.join(first, on="rank"))
    lines = _significant(lines_of(rows, first, middle))
    middle_ns = origin + round(middle)
    known = {row["rank"]: row for row in lines.iter_rows(named=True)}
    return {
        rank: _clock(rank, known.get(same.get(rank, rank)), counts.get(rank, 0), middle_ns) for rank in ranks
    }


def _clock(rank: int, line: Mapping[str, float] | None, ends: int, middle: int) -> Clock:
    if line is None:
        return Clock(rank, part=rank)
    return Clock(
        rank=rank,
        offset_ns=round(line["offset"]),
        drift=line["drift"] + 0.0,  # no −0
        residual_ns=round(line["residual"]),
        # Who shares the first rank's clock has its time exactly.
        error_ns=0 if line["rank"] == line["part"] != rank else round(line["error"]),
        anchors=ends,
        part=int(line["part"]),
        middle_ns=middle,
    )


def _spread(rows: pl.DataFrame) -> pl.DataFrame:
    """rank, offset, part: from the lowest rank to all that share a call with it, and on from those."""
    left = rows
    parts: list[pl.DataFrame] = []
    while not left.is_empty():
        start = take_smallest(left["rank"])
        known = pl.DataFrame(
            {"rank": [start], "offset": [0.0]}, schema={"rank": pl.Int32, "offset": pl.Float64}
        )
        while True:
            ends = (
                left.join(known, on="rank").group_by("key").agg(end=(pl.col("y") - pl.col("offset")).median())
            )
            reached = left.join(known, on="rank", how="anti").join(ends, on="key")
            if reached.is_empty():
                break
            more = reached.group_by("rank").agg(offset=(pl.col("y") - pl.col("end")).median()).sort("rank")
            known = pl.concat([known, more])
        parts.append(known.with_columns(part=pl.lit(start, dtype=pl.Int32)))
        left = left.join(known, on="rank", how="anti")
    return pl.concat(parts)


def _middle(rows: pl.DataFrame) -> float:
    end = pl.col("y") - pl.col("offset")
    low, high = rows.select(low=end.min(), high=end.max()).row(0)
    return (float(low) + float(high)) / 2


def _significant(lines: pl.DataFrame) -> pl.DataFrame:
    """Without offsets that may be noise, where most are: the recorded clocks, mostly of one host, are better than a fit.

    Where most ranks have a clock of their own, one that happens to be near the first is not an exception.
    """
    here = pl.col("rank") == pl.col("part")
    of_first = pl.col("error").filter(here).first().over("part")
    doubt = OFFSET_SIGMA * (pl.col("error") ** 2 + of_first**2).sqrt()
    near = (pl.col("drift") == 0) & (pl.col("offset").abs() < doubt)
    mostly = near.filter(~here).mean().over("part").fill_null(1.0) >= MAJORITY
    return lines.with_columns(offset=pl.when(near & mostly).then(0.0).otherwise("offset"))
