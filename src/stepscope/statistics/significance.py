"""The one definition of significance: what noise alone would show with a probability below SIGNIFICANCE, over all tests together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepscope.registers.levels import FAMILIES, SIGNIFICANCE
from stepscope.statistics.student_t import MANY, quantile

# What each kind of rows of a diff may risk, so that all of them together risk SIGNIFICANCE (Bonferroni).
OF_FAMILY = SIGNIFICANCE / FAMILIES
_AS_LIKELY = 1 + 1e-9  # equal probabilities that were summed in another order


def select_significant(p_values: Sequence[float], level: float) -> list[bool]:
    """Which are significant by Holm's method: with at most `level` risk that any of them is noise."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    significant = [False] * len(p_values)
    for turn, place in enumerate(order):
        if p_values[place] > level / (len(p_values) - turn):
            break
        significant[place] = True
    return significant


def fisher_p_value(a: tuple[int, int], b: tuple[int, int]) -> float:
    """Fisher's exact test of two counts, each with its total: the probability of counts at least as unequal in noise alone."""
    hits, total = a[0] + b[0], a[1] + b[1]

    def likely(ours: int) -> float:
        return math.comb(a[1], ours) * math.comb(b[1], hits - ours) / math.comb(total, hits)

    seen = likely(a[0])
    possible = range(max(0, hits - b[1]), min(hits, a[1]) + 1)
    return min(1.0, sum(each for each in map(likely, possible) if each <= seen * _AS_LIKELY))


def sigmas_above(tests: int) -> float:
    """Standard deviations that the largest of `tests` values of normal noise exceeds with the probability SIGNIFICANCE."""
    return quantile(2 * SIGNIFICANCE / max(1, tests), MANY)
