"""What is left of padded batches whose samples are sorted by length and batched again."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.batches.by_length import is_counted, share_if_sorted
from stepscope.analysis.lengths import CountedLengths


def size(lengths: list[int], positions: int, calls: int = 1) -> CountedLengths:
    """Batches of such samples, of as many positions as are counted."""
    counts = [lengths.count(length) for length in range(1, positions + 1)]
    mean = sum(lengths) / len(lengths)
    shape = (len(lengths) // calls, positions)
    return CountedLengths("torch", "ids", shape, calls, mean, float(max(lengths)), tuple(counts))


def test_sorted_among_themselves_batches_have_their_own_longest_sample() -> None:
    """Eight batches of eight, each with one long sample: sorted, seven are of the short ones, and one of the long."""
    mixed = size(([10] * 7 + [80]) * 8, 80, calls=8)
    among_all = share_if_sorted([mixed], 8, is_rounded=False)
    assert among_all.linear == pytest.approx((7 * 10 + 80) / 8 / 80, rel=0.02)
    assert among_all.square == pytest.approx((7 * 10**2 + 80**2) / 8 / 80**2, rel=0.02)
    assert share_if_sorted([mixed], 1, is_rounded=False).linear == pytest.approx(1.0)


def test_more_batches_together_leave_less() -> None:
    spread = size(list(range(1, 65)) * 2, 64, calls=2)
    left = [share_if_sorted([spread], count, is_rounded=False).linear for count in (1, 2, 16, 128)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == pytest.approx(0.5, rel=0.02)


def test_batches_are_rounded_up_to_what_all_of_them_are_multiples_of() -> None:
    """One length of all says nothing of that."""
    sizes = [size([8] * 15 + [64], 64), size([8] * 15 + [96], 96)]
    exact, rounded = (share_if_sorted(sizes, 16, is_rounded=each).linear for each in (False, True))
    assert rounded == pytest.approx((15 * 32 + 96) / 16 / 80, rel=0.05)
    assert exact < 0.5 * rounded
    assert share_if_sorted(sizes[:1], 16, is_rounded=True) == share_if_sorted(sizes[:1], 16, is_rounded=False)


def test_longer_batches_count_by_their_positions() -> None:
    sizes = [size([32] * 16, 32), size([32] * 16, 128)]
    left = share_if_sorted(sizes, 4, is_rounded=False)
    assert (left.linear, left.square) == pytest.approx((64 / 160, 2 * 32**2 / (32**2 + 128**2)), rel=0.05)


def test_older_recordings_do_not_say_how_many_samples_have_which_length() -> None:
    old = CountedLengths("torch", "ids", (4, 64), 3, 18.0, 32.0)
    assert not is_counted([old])
    assert not is_counted([size([8] * 4, 64), old])
    assert not is_counted([])
    assert is_counted([size([8] * 4, 64)])
