"""Figures as people read them."""

from __future__ import annotations

import pytest

from stepscope.units import duration, percent, size, speedup


@pytest.mark.parametrize(
    ("share", "digits", "text"), [(0.794, 0, "79 %"), (0.794, 1, "79.4 %"), (1, 0, "100 %"), (0.0004, 2, "0.04 %")]
)  # fmt: skip
def test_percent(share: float, digits: int, text: str) -> None:
    assert percent(share, digits) == text


@pytest.mark.parametrize(
    ("ns", "text"), [(999, "999 ns"), (1_500, "1.50 µs"), (25_400_000, "25.4 ms"), (152e9, "152 s")]
)
def test_duration(ns: float, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(("count", "text"), [(17, "17 B"), (1536, "1.50 KiB"), (5 << 30, "5.00 GiB")])
def test_size(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.4, 2.1, "1.40–2.10×"),
        (1.401, 1.402, "1.40×"),
        (50, 100, "50–more than 100×"),
        (100, 100, "more than 100×"),
    ],
)
def test_speedup(low: float, high: float, text: str) -> None:
    assert speedup(low, high) == text
