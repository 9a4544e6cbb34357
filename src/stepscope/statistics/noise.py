"""The one definition of noise: a robust standard deviation, a standard error, and the interval that is shown as ±."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from stepscope.lazy import dataclass
from stepscope.registers.levels import MAD_TO_SIGMA, SIGNIFICANCE
from stepscope.statistics.student_t import quantile, two_sided


def sigma_of(deviations: Sequence[float]) -> float:
    """The standard deviation of normal noise with these absolute deviations; a few wild ones do not move it."""
    return MAD_TO_SIGMA * median(deviations) if deviations else 0.0


@dataclass(frozen=True)
class Noise:
    """The standard error of a figure or a difference, and its degrees of freedom."""

    error: float
    df: float

    @property
    def margin(self) -> float:
        """Shown as ±: noise alone exceeds it with the probability SIGNIFICANCE."""
        return quantile(SIGNIFICANCE, round(self.df, 2)) * self.error

    @property
    def margin_above(self) -> float:
        """The one-sided margin, where only growth counts: noise alone exceeds it upwards with the probability SIGNIFICANCE."""
        return quantile(2 * SIGNIFICANCE, round(self.df, 2)) * self.error

    def p_value(self, difference: float) -> float:
        """The probability of a difference at least as large in noise alone."""
        if not self.error:
            return 0.0 if difference else 1.0
        return two_sided(difference / self.error, self.df)
