"""How far the clock of each rank is from that of the first, by collectives that all ranks leave at the same moment.

Only all-reduces and barriers count. The end of such a call by rank r is e + offset_r + drift_r · (e − middle) + noise, with
the same true end e for all its ranks. Noise makes ends late and never early. Offsets spread from the first rank over shared
calls; then ends and lines are fitted in turn, each where a fifth of what it rests on is earlier. Clocks drift if any of them does so significantly,
by no more than clocks do, and where the recording is long and quiet enough to tell: else none does.
What differs between ranks in every call alike cannot be told from an offset: no method without a second clock can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.across.matching import KEY, TOGETHER
from stepscope.across.student import MANY, quantile

ANCHORS = {
    "key": pl.UInt64,
    "rank": pl.Int32,
    "end_ns": pl.Int64,
    "lane": pl.UInt64,
    "place": pl.Int32,
    "calls": pl.UInt32,
}
MOST_ANCHORS = 400  # of one rank: more make the error no smaller than the noise of the rest
_ROUNDS = 20
_FOR_DRIFT = 8
_CHANCE = 0.01
_DOUBT = 3.0
_STEEPEST = 1e-3  # while lines are still sought
_MOST_DRIFT = 2e-4  # quartz is at most 100 ppm off, and two may be so either way
_TELLS_DRIFT = 1e-4 / 3  # a greater standard error cannot tell what a clock may drift from noise
_EARLY = 0.2  # ends come late for noise, never early: the earliest fifth tells most, and is no single outlier
_NEAR = 0.1  # standard deviations: nearer ones count alike
_TO_SIGMA = 1.4826
_LEAST_SIGMA_NS = 100.0


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
        """Whether collectives told the offset."""
        return self.anchors > 0

    def common(self, column: str) -> pl.Expr:
        """The time by the first rank's clock."""
        time = pl.col(column)
        bent = (time - self.offset_ns - self.middle_ns).cast(pl.Float64) * self.drift
        return time - self.offset_ns - bent.round().cast(pl.Int64)


def anchors(rows: pl.DataFrame) -> pl.DataFrame:
    """The ends that may tell a clock, of the rows of `keyed`; evenly thinned where there are many.

    Thinned by the key, so that all ranks keep the same ones.
    """
    fit = rows.filter(pl.col("name").is_in(TOGETHER) & (pl.col("dur_ns") > 0))
    found = fit.select(
        *("lane", "place", "rank"),
        calls=pl.len().over("lane", "place"),
        key=_one_key(),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
    ).select(*ANCHORS)
    every = len(found) // MOST_ANCHORS + 1
    kept = 1 << (every - 1).bit_length() if every > 1 else 1
    return found.filter(pl.col("key") % kept == 0).cast(ANCHORS)  # type: ignore[arg-type]


def _one_key() -> pl.Expr:
    """The four columns of a key in one number, by multiplications that wrap around."""
    lane, place, number, again = (pl.col(name).cast(pl.Int64, wrap_numerical=True) for name in KEY)
    mixed = lane + place * 1_000_003 + number * 7_046_029_254_386_353 + again * 97_531
    return mixed.cast(pl.UInt64, wrap_numerical=True)


def fit_clocks(found: pl.DataFrame, ranks: Sequence[int]) -> dict[int, Clock]:
    """The clocks of these ranks by the anchors of all of them."""
    shared = found.filter(pl.col("rank").n_unique().over("key") > 1)
    shared = shared.unique(["key", "rank"], keep="none", maintain_order=True)
    if shared.is_empty():
        return {rank: Clock(rank, part=rank) for rank in ranks}
    origin = int(shared["end_ns"].min())  # type: ignore[arg-type]
    rows = shared.select("key", "rank", y=(pl.col("end_ns") - origin).cast(pl.Float64))
    rows = rows.sort("key", "rank")
    first = _spread(rows)
    rows = rows.join(first, on="rank")
    lines = _refined(rows, first, bent=first["rank"])
    believed = lines.filter((pl.col("drift").abs() <= _MOST_DRIFT) & (pl.col("drift_error") <= _TELLS_DRIFT))
    drifting = believed["rank"] if _any_drifts(believed, len(lines)) else first["rank"].clear()
    if len(drifting) < len(first):
        lines = _refined(rows, first, bent=drifting)
    lines = _significant(lines)
    middle = origin + round(_middle(rows))
    known = {row["rank"]: row for row in lines.iter_rows(named=True)}
    return {rank: _clock(rank, known.get(rank), middle) for rank in ranks}


def _clock(rank: int, line: Mapping[str, float] | None, middle: int) -> Clock:
    if line is None:
        return Clock(rank, part=rank)
    return Clock(
        rank=rank,
        offset_ns=round(line["offset"]),
        drift=line["drift"] + 0.0,  # no −0
        residual_ns=round(line["residual"]),
        error_ns=round(line["error"]),
        anchors=int(line["anchors"]),
        part=int(line["part"]),
        middle_ns=middle,
    )


def _spread(rows: pl.DataFrame) -> pl.DataFrame:
    """rank, offset, part: from the lowest rank to all that share a call with it, and on from those."""
    left = rows
    parts: list[pl.DataFrame] = []
    while not left.is_empty():
        start = int(left["rank"].min())  # type: ignore[arg-type]
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
    ends = rows.select((pl.col("y") - pl.col("offset")).alias("end"))["end"]
    return (float(ends.min()) + float(ends.max())) / 2  # type: ignore[arg-type]


def _refined(rows: pl.DataFrame, first: pl.DataFrame, bent: pl.Series) -> pl.DataFrame:
    """rank, part, offset, drift and its error, residual, error, anchors; `bent` are the ranks whose clocks may drift."""
    middle = _middle(rows)
    lines = first.with_columns(drift=pl.lit(0.0))
    base = rows.select("key", "rank", "y")
    for _ in range(_ROUNDS):
        placed = base.join(lines, on="rank")
        by_common = (
            pl.col("y") - pl.col("offset") - pl.col("drift") * (pl.col("y") - pl.col("offset") - middle)
        )
        ends = placed.group_by("key").agg(end=by_common.quantile(_EARLY, "linear"))
        placed = placed.join(ends, on="key").with_columns(
            x=pl.col("end") - middle, miss=by_common - pl.col("end"), off=pl.col("y") - pl.col("end")
        )
        lines = _relative(_lines(placed, bent))
    return lines


def _lines(placed: pl.DataFrame, bent: pl.Series) -> pl.DataFrame:
    """The line of each rank below which a fifth of its offsets lie, by weights that follow from the last line."""
    sigma = (pl.col("miss").abs().median().over("rank") * _TO_SIGMA).clip(_LEAST_SIGMA_NS)
    side = pl.when(pl.col("miss") > 0).then(_EARLY).otherwise(1 - _EARLY)
    weight = side / (pl.col("miss").abs() / sigma + _NEAR)
    w, x, y = pl.col("w"), pl.col("x"), pl.col("off")
    sums = (
        placed.with_columns(w=weight, sigma=sigma)
        .group_by("rank", "part")
        .agg(
            sw=w.sum(), sx=(w * x).sum(), sy=(w * y).sum(), sxx=(w * x * x).sum(), sxy=(w * x * y).sum(),
            sigma=pl.col("sigma").first(), residual=pl.col("miss").abs().median(), anchors=pl.len(),
            plain=y.median(),
        )
    )  # fmt: skip
    inner = pl.col("sxx") - pl.col("sx") ** 2 / pl.col("sw")
    slope = (pl.col("sxy") - pl.col("sx") * pl.col("sy") / pl.col("sw")) / inner
    may = pl.col("rank").is_in(bent.implode())
    told = (pl.col("anchors") >= _FOR_DRIFT) & (inner > 0) & (slope.abs() < _STEEPEST) & may
    # Of few ranks, some define the ends and seem to have no noise at all.
    noise = pl.max_horizontal("sigma", pl.col("sigma").median().over("part"))
    offset = (pl.col("sy") - pl.col("drift") * pl.col("sx")) / pl.col("sw")
    return (
        sums.with_columns(
            drift=pl.when(told).then(slope).otherwise(0.0),
            drift_error=pl.when(told).then(noise / inner.sqrt()),
            error=noise / pl.col("anchors").sqrt(),
        )
        .with_columns(offset=pl.when(pl.col("sw") > 0).then(offset).otherwise("plain"))
        .select("rank", "part", "offset", "drift", "drift_error", "residual", "error", "anchors")
        .sort("rank")
    )


def _any_drifts(lines: pl.DataFrame, ranks: int) -> bool:
    """Whether any clock drifts by more than noise would make one of so many seem to; then all may, if only by little."""
    here = pl.col("rank") == pl.col("part")
    of_first = pl.col("drift_error").filter(here).first().over("part").fill_null(0.0)
    far = pl.col("drift").abs() / (pl.col("drift_error") ** 2 + of_first**2).sqrt()
    return float(lines.select(far.max()).item() or 0.0) > quantile(_CHANCE / max(1, ranks), MANY)


def _significant(lines: pl.DataFrame) -> pl.DataFrame:
    """Without offsets that may be noise: the recorded clocks, mostly of one host, are better than that."""
    here = pl.col("rank") == pl.col("part")
    of_first = pl.col("error").filter(here).first().over("part")
    doubt = _DOUBT * (pl.col("error") ** 2 + of_first**2).sqrt()
    noise = (pl.col("drift") == 0) & (pl.col("offset").abs() < doubt)
    return lines.with_columns(offset=pl.when(noise).then(0.0).otherwise("offset"))


def _relative(lines: pl.DataFrame) -> pl.DataFrame:
    """With the first rank of each part as its clock."""
    here = pl.col("rank") == pl.col("part")
    return lines.with_columns(
        pl.col(name) - pl.col(name).filter(here).first().over("part") for name in ("offset", "drift")
    )
