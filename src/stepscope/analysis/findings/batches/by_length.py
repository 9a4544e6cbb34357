"""What is left of padded batches once samples of similar length come together, by the counted lengths of their samples.

Samples are sorted among those of some batches and batched again: the longest sample of each new batch decides its length. The more
batches are sorted together, the less padding is left; the longest samples stay in a batch of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepscope.analysis.lengths import CountedLengths
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import SORTED_MULTIPLE_MOST


@dataclass(frozen=True)
class Share:
    """Of the positions of all batches, and of their squares, as attention has them."""

    linear: float
    square: float


def is_counted(sizes: Sequence[CountedLengths]) -> bool:
    """Whether the capture said how many samples of each batch have which length."""
    return bool(sizes) and all(sum(each.counts) > 0 for each in sizes)


def share_if_sorted(sizes: Sequence[CountedLengths], batches: float, is_rounded: bool) -> Share:
    """What is left where the samples of this number of batches are sorted together; `is_rounded`: to lengths like those that there are."""
    parts = _parts(sizes)
    samples = sum(each.calls * each.shape[0] for each in sizes) / sum(each.calls for each in sizes)
    count = max(1, round(batches))
    multiple = _multiple(sizes) if is_rounded else 1
    ends = [(place - 1 / (2 * samples)) / count for place in range(1, count + 1)]
    longest = [math.ceil(_at(parts, end) / multiple) * multiple for end in ends]
    return Share(*(min(1.0, _power_mean(longest, power) / _of_all(sizes, power)) for power in (1, 2)))


@dataclass(frozen=True)
class _Part:
    """Samples of these lengths; `upto`: the share of samples that are no longer."""

    least: float
    most: float
    upto: float


def _parts(sizes: Sequence[CountedLengths]) -> list[_Part]:
    """Of all samples, shortest first."""
    found = sorted(
        ((part + 1) * each.positions / len(each.counts), each.positions / len(each.counts), count)
        for each in sizes
        for part, count in enumerate(each.counts)
        if count
    )
    total, before = sum(count for _, _, count in found), 0
    parts = []
    for most, width, count in found:
        before += count
        parts.append(_Part(most - width, most, before / total))
    return parts


def _at(parts: list[_Part], share: float) -> float:
    """The length that this share of the samples has at most."""
    below = 0.0
    for part in parts:
        if part.upto >= share:
            return part.least + (part.most - part.least) * (share - below) / (part.upto - below)
        below = part.upto
    return parts[-1].most


def _multiple(sizes: Sequence[CountedLengths]) -> int:
    """What batches are rounded up to; unknown of those that all have one length."""
    common = math.gcd(*(each.positions for each in sizes))
    return common if len(sizes) > 1 and common <= SORTED_MULTIPLE_MOST else 1


def _of_all(sizes: Sequence[CountedLengths], power: int) -> float:
    samples = sum(each.calls * each.shape[0] for each in sizes)
    return sum(each.calls * each.shape[0] * float(each.positions) ** power for each in sizes) / samples


def _power_mean(lengths: Sequence[float], power: int) -> float:
    return sum(float(each) ** power for each in lengths) / len(lengths)
