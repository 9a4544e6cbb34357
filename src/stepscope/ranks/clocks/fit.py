"""Lines through the ends of calls: offset and drift of each rank's clock, once the ranks' first offsets are known.

The end of a call by rank r is e + offset_r + drift_r · (e − middle) + noise, with the same true end e for all its ranks. Ends and
lines are fitted in turn, by two losses: where a fifth of what they rest on is earlier, since most noise makes ends late and
never early; and where the middle of it is, for noise that goes both ways. Of the two the one counts whose errors are
smaller, by the residuals of all ranks. Drifts are drawn together as far as noise may have driven them apart: a clock is believed
to drift by what the ranks' slopes differ beyond their errors, which is nothing if they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import median

import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.calibration.clocks import LEAST_END_SIGMA_NS, MOST_DRIFT, USUAL_DRIFT
from stepscope.registers.levels import (
    DRIFT_SIGMA,
    EARLY_QUANTILE,
    EARLY_QUANTILE_HIGH,
    EARLY_QUANTILE_LOW,
    FEWEST_ENDS_FOR_DRIFT,
    FIT_ROUNDS,
    FIT_ROUNDS_AGAIN,
    HUBER_SIGMA,
    MAD_TO_SIGMA,
    NEAR_SIGMA,
)
from stepscope.trace.frames import take_median

LINES = ("rank", "part", "offset", "drift", "residual", "error")
_AROUND_EARLY = (EARLY_QUANTILE_LOW, EARLY_QUANTILE_HIGH)


@dataclass(frozen=True)
class _Loss:
    early: bool  # else the middle

    def ends(self, placed: pl.DataFrame) -> pl.DataFrame:
        """With `end`: the true end of each call, by the ranks' ends in common time."""
        common = pl.col("common")
        if self.early:
            return placed.with_columns(end=common.quantile(EARLY_QUANTILE, "linear").over("key"))
        placed = placed.with_columns(middle=common.median().over("key"))
        placed = placed.with_columns(apart=common - pl.col("middle"))
        far = HUBER_SIGMA * MAD_TO_SIGMA * take_median(placed["apart"].abs())
        mean = pl.col("apart").clip(-far, far).mean().over("key")
        return placed.with_columns(end=pl.col("middle") + mean)

    def weight(self) -> pl.Expr:
        """Of a call for its rank's line, by how far it was from the last one."""
        far = pl.col("miss").abs() / pl.col("sigma")
        if self.early:
            return pl.when(pl.col("miss") > 0).then(EARLY_QUANTILE).otherwise(1 - EARLY_QUANTILE) / (
                far + NEAR_SIGMA
            )
        return 1 / (far / HUBER_SIGMA).clip(1)

    def variance(self, misses: pl.Series) -> float:
        """Of an offset by one call, if its residuals are spread like these: n calls divide it by n."""
        if self.early:
            low, high = (float(misses.quantile(at, "linear") or 0.0) for at in _AROUND_EARLY)
            dense = (_AROUND_EARLY[1] - _AROUND_EARLY[0]) / max(high - low, LEAST_END_SIGMA_NS)
            return EARLY_QUANTILE * (1 - EARLY_QUANTILE) / dense**2
        around = misses - take_median(misses)
        far = HUBER_SIGMA * max(MAD_TO_SIGMA * float(around.abs().median() or 0.0), LEAST_END_SIGMA_NS)
        inside = float((around.abs() <= far).mean())
        return float((around.clip(-far, far) ** 2).mean()) / inside**2


_LOSSES = (_Loss(early=True), _Loss(early=False))


@dataclass(frozen=True)
class _Fit:
    lines: pl.DataFrame
    placed: pl.DataFrame
    variance: float


def lines_of(rows: pl.DataFrame, first: pl.DataFrame, middle: float) -> pl.DataFrame:
    """LINES by the ends `rows` (key, rank, y), beginning with the offsets of `first` (rank, offset, part)."""
    start = first.with_columns(drift=pl.lit(0.0))
    fits = [_by(loss, rows, start, middle) for loss in _LOSSES]
    best = min(fits, key=lambda fit: fit.variance)
    return _with_errors(best).select(*LINES).sort("rank")


def _by(loss: _Loss, rows: pl.DataFrame, start: pl.DataFrame, middle: float) -> _Fit:
    """Lines that are free, and again with the drifts that are believed."""
    free = _fitted(rows, start, middle, loss, FIT_ROUNDS, bent=True)
    drifts = _drawn_together(_with_errors(free))
    again = free.lines.select("rank", "part", "offset").join(drifts, on="rank", maintain_order="left")
    return _fitted(rows, again, middle, loss, FIT_ROUNDS_AGAIN, bent=False)


def _fitted(
    rows: pl.DataFrame, start: pl.DataFrame, middle: float, loss: _Loss, rounds: int, *, bent: bool
) -> _Fit:
    lines = start
    for _ in range(rounds):
        lines = _relative(_lines(_placed(rows, lines, middle, loss), loss, bent=bent))
    placed = _placed(rows, lines, middle, loss)
    calls, ranks = rows["key"].n_unique(), rows["rank"].n_unique()
    # What was fitted to the residuals makes them smaller than the noise: lines of ranks, ends of calls.
    taken = (2 if bent else 1) * ranks + calls
    loose = len(rows) / max(1.0, len(rows) - taken)
    return _Fit(lines, placed, loss.variance(placed["miss"]) * loose)


def _placed(rows: pl.DataFrame, lines: pl.DataFrame, middle: float, loss: _Loss) -> pl.DataFrame:
    """The ends with their distance `miss` from the line of their rank; `x` is the time, `off` the distance from the true end."""
    placed = rows.select("key", "rank", "y").join(lines, on="rank", maintain_order="left")
    straight = pl.col("y") - pl.col("offset")
    placed = placed.with_columns(common=straight - pl.col("drift") * (straight - middle))
    return loss.ends(placed).with_columns(
        x=pl.col("end") - middle, miss=pl.col("common") - pl.col("end"), off=pl.col("y") - pl.col("end")
    )


def _lines(placed: pl.DataFrame, loss: _Loss, *, bent: bool) -> pl.DataFrame:
    """rank, part, offset and drift by weighted least squares; drifts stay as they are unless `bent`."""
    sigma = (pl.col("miss").abs().median().over("rank") * MAD_TO_SIGMA).clip(LEAST_END_SIGMA_NS)
    w, x, y = pl.col("w"), pl.col("x"), pl.col("off")
    sums = (
        placed.with_columns(sigma=sigma)
        .with_columns(w=loss.weight())
        .group_by("rank", "part", maintain_order=True)
        .agg(
            sw=w.sum(), sx=(w * x).sum(), sy=(w * y).sum(), sxx=(w * x * x).sum(), sxy=(w * x * y).sum(),
            drift=pl.col("drift").first(), anchors=pl.len(),
        )
    )  # fmt: skip
    if bent:
        inner = pl.col("sxx") - pl.col("sx") ** 2 / pl.col("sw")
        slope = (pl.col("sxy") - pl.col("sx") * pl.col("sy") / pl.col("sw")) / inner
        told = (pl.col("anchors") >= FEWEST_ENDS_FOR_DRIFT) & (inner > 0) & slope.is_finite()
        sums = sums.with_columns(drift=pl.when(told).then(slope).otherwise(0.0))
    offset = (pl.col("sy") - pl.col("drift") * pl.col("sx")) / pl.col("sw")
    return sums.select("rank", "part", "drift", offset=offset)


def _with_errors(fit: _Fit) -> pl.DataFrame:
    """The lines with residual, anchors, error of the offset and of the drift; who is noisier than most has greater ones."""
    x = pl.col("x")
    told = fit.placed.group_by("rank", maintain_order=True).agg(
        residual=pl.col("miss").abs().median(),
        anchors=pl.len(),
        inner=((x - x.mean()) ** 2).sum(),
        noise=(pl.col("miss") - pl.col("miss").median()).abs().median(),
    )
    usual = max(take_median(told["noise"]), LEAST_END_SIGMA_NS / MAD_TO_SIGMA)
    one = sqrt(fit.variance) * (pl.col("noise") / usual).clip(1)
    told = told.with_columns(error=one / pl.col("anchors").sqrt(), drift_error=one / pl.col("inner").sqrt())
    return fit.lines.join(told, on="rank", maintain_order="left")


def _drawn_together(lines: pl.DataFrame) -> pl.DataFrame:
    """rank, drift: of each part the slopes, drawn to their median as far as their errors explain that they differ."""
    frames = []
    for (_part,), rows in lines.group_by("part", maintain_order=True):
        slopes, errors = rows["drift"].to_list(), rows["drift_error"].to_list()
        told = [
            error * _unsure(count) if count >= FEWEST_ENDS_FOR_DRIFT else float("inf")
            for error, count in zip(errors, rows["anchors"], strict=True)
        ]
        drifts = _shrunk(slopes, told)
        frames.append(rows.select("rank", drift=pl.Series(drifts, dtype=pl.Float64)))
    return pl.concat(frames)


def _unsure(ends: int) -> float:
    """By how much slopes are farther off than their errors, which few ends determine only roughly: Student's deviation."""
    free = ends - 2
    return sqrt(free / (free - 2))


def _shrunk(slopes: Sequence[float], errors: Sequence[float]) -> list[float]:
    """The slopes as far as they are more than errors; what no clock does is none, and the first has none by definition."""
    middle = median(slopes)
    apart = [slope - middle for slope in slopes]
    counted = [
        (far, error)
        for far, error in zip(apart, errors, strict=True)
        if abs(far) <= MOST_DRIFT and 0 < error < MOST_DRIFT
    ]
    spread = _spread(counted)
    kept = [
        far * spread / (spread + error**2) if abs(far) <= MOST_DRIFT and error else 0.0
        for far, error in zip(apart, errors, strict=True)
    ]
    return [each - kept[0] for each in kept]


def _spread(slopes: Sequence[tuple[float, float]]) -> float:
    """The variance of the true drifts: 0 unless slopes vary by more than noise explains for this number of clocks."""
    if len(slopes) < 2:
        return 0.0
    free = len(slopes) - 1
    by_errors = sum((far / error) ** 2 for far, error in slopes) / free
    if by_errors <= 1 + DRIFT_SIGMA * sqrt(2 / free):
        return 0.0
    beyond = sum(far**2 for far, _ in slopes) / free - sum(error**2 for _, error in slopes) / len(slopes)
    return min(max(beyond, 0.0), USUAL_DRIFT**2)


def _relative(lines: pl.DataFrame) -> pl.DataFrame:
    """With the first rank of each part as its clock."""
    here = pl.col("rank") == pl.col("part")
    return lines.with_columns(
        pl.col(name) - pl.col(name).filter(here).first().over("part") for name in ("offset", "drift")
    )
