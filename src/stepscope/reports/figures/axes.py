"""Scales, ticks and frames of drawings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.reports.figures.figure import WIDTH
from stepscope.reports.figures.markup import Markup, join, tag

LEFT, RIGHT, TOP, BOTTOM = 76, 16, 10, 26


@dataclass(frozen=True)
class Frame:
    """Where the data is drawn: from `low` to `high` across, from 0 to `top` upwards."""

    y: float
    height: float
    low: float
    high: float
    top: float

    def across(self, value: float) -> float:
        """The x of a value."""
        span = (self.high - self.low) or 1.0
        return LEFT + (value - self.low) / span * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        """The y of a value."""
        return self.y + self.height * (1 - value / (self.top or 1.0))


def ticks(top: float, most: int = 5) -> list[float]:
    """Round values from 0 to the top."""
    if top <= 0:
        return [0.0]
    rough = top / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


def binary_ticks(top: float, most: int = 5) -> list[float]:
    """Round values in units of 1024: sizes of memory."""
    unit = 1024 ** max(0, math.floor(math.log(max(top, 1.0), 1024)))
    return [tick * unit for tick in ticks(top / unit, most)]


def grid(frame: Frame, marks: list[float], words: Callable[[float], str]) -> Markup:
    """Horizontal lines with their values at the left."""
    pieces = []
    for mark in marks:
        y = frame.up(mark)
        pieces.append(tag("line", x1=float(LEFT), x2=float(WIDTH - RIGHT), y1=y, y2=y, class_="grid"))
        pieces.append(tag("text", words(mark), x=float(LEFT - 8), y=y + 4, class_="tick end"))
    return join(pieces)


def under(frame: Frame, marks: list[float], words: Callable[[float], str]) -> Markup:
    """Values along the bottom."""
    y = frame.y + frame.height + 17
    return join([tag("text", words(mark), x=frame.across(mark), y=y, class_="tick mid") for mark in marks])


def duration_words(top_ns: float) -> Callable[[float], str]:
    """Writes durations in the unit that suits the largest, so that all ticks have the same."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if top_ns >= scale:
            return lambda ns: f"{ns / scale:g} {unit}"
    return lambda ns: f"{ns:g} ns"
