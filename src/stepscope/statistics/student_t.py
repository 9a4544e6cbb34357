"""Student's t distribution: how likely noise alone makes a difference of that many standard errors, and the reverse."""

from __future__ import annotations

import math
from functools import lru_cache

MANY = 1e6  # degrees of freedom from which on it is the normal distribution
_TINY = 1e-30


def two_sided(t: float, df: float) -> float:
    """The probability of a value at least so far from 0."""
    if not math.isfinite(t):
        return 0.0
    if df >= MANY:
        return math.erfc(abs(t) / math.sqrt(2))
    return _beta_share(df / 2, 0.5, df / (df + t * t))


@lru_cache(maxsize=4096)
def quantile(chance: float, df: float) -> float:
    """The distance from 0 that is exceeded by this two-sided chance."""
    low, high = 0.0, 1.0
    while two_sided(high, df) > chance and high < 1e12:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, df) > chance else (low, middle)
    return high


def _beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's method."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for factor in (even, odd):
            d = 1 / _away_from_zero(1 + factor * d)
            c = _away_from_zero(1 + factor / c)
            found *= d * c
        if abs(d * c - 1) < 1e-12:
            break
    return found


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
