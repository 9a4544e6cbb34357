"""Figures for people: durations, byte counts and big numbers, with their units."""

from __future__ import annotations

_DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def duration(ns: float) -> str:
    """Three significant figures in the largest unit that keeps the figure at or above one."""
    for scale, unit in _DURATIONS:
        if abs(ns) >= scale:
            return f"{_three_figures(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """A byte count in binary units."""
    unit = 0
    while abs(count) >= 1024 and unit + 1 < len(_BYTES):
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{_three_figures(count)} {_BYTES[unit]}"


def count(number: int) -> str:
    """A whole number with thin groups of three digits: 1,234,567."""
    return f"{number:,}"


def percent(share: float, digits: int = 0) -> str:
    """A share of one, as `79 %`."""
    return f"{100 * share:.{digits}f} %"


MOST_TIMES = 100  # a larger speed-up is written as that


def times(value: float) -> str:
    """A ratio with as many figures as say something: 1.37, 4.8, 12."""
    return f"{value:.{2 if value < 3 else 1 if value < 10 else 0}f}"


def speedup(low: float, high: float) -> str:
    """A speed-up within bounds: `1.40–2.10×`, or one figure where both ends read the same."""
    if low >= MOST_TIMES:
        return f"more than {MOST_TIMES}×"
    first, last = times(low), times(high)
    if first == last:
        return f"{first}×"
    return f"{first}–{'more than ' if high >= MOST_TIMES else ''}{last}×"


def _three_figures(value: float) -> str:
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"
