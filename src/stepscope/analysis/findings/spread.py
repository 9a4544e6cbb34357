"""How far apart the ends of a promise are: doubts do not all come true at once, and gains differ from what any rule foresees."""

from __future__ import annotations

from stepscope.analysis.findings.finding import Interval
from stepscope.lazy import dataclass
from stepscope.registers.calibration.profiler import (
    BEST_TOGETHER,
    BEST_TOGETHER_OF_DEVICE,
    REMAINS_OF_PYTHON,
    UNFORESEEN_ABOVE,
    UNFORESEEN_ABOVE_OF_COPIES,
    UNFORESEEN_ABOVE_OF_DEVICE,
    UNFORESEEN_ABOVE_OF_PYTHON,
    UNFORESEEN_BELOW,
    UNFORESEEN_BELOW_OF_DEVICE,
    WORST_TOGETHER,
    WORST_TOGETHER_OF_DEVICE,
)


@dataclass(frozen=True)
class Spread:
    """`best`, `worst`: how much of what is in doubt comes together. `above`, `below`: by how much gains differ from the middle anyway.

    `remains`: the share of what goes that a fix may put in its place, which decides where little else is left.
    """

    best: float
    worst: float
    above: float
    below: float
    remains: float = 0.0
    is_bound: bool = False  # the ends are what can be at most and at least, whatever decides

    def around(self, left: Interval) -> Interval:
        """What a change leaves of a step, with the ends of the interval that should hold the truth."""
        if not 0 < left.mid < 1:
            return left
        unforeseen = (1 - left.mid) ** 0.5
        low, high = (
            left.mid * (end / left.mid) ** share
            for end, share in ((left.low, self.best), (left.high, self.worst))
        )
        low = min(low, left.mid / (1 + self.above * unforeseen))
        replaced = left.mid + self.remains * (1 - left.mid)
        high = max(high, left.mid * (1 + self.below * unforeseen), replaced)
        return Interval(low, left.mid, min(1.0, high))


OF_DEVICE = Spread(
    BEST_TOGETHER_OF_DEVICE, WORST_TOGETHER_OF_DEVICE, UNFORESEEN_ABOVE_OF_DEVICE, UNFORESEEN_BELOW_OF_DEVICE
)
OF_HOST = Spread(BEST_TOGETHER, WORST_TOGETHER, UNFORESEEN_ABOVE, UNFORESEEN_BELOW)
OF_PYTHON = Spread(
    BEST_TOGETHER, WORST_TOGETHER, UNFORESEEN_ABOVE_OF_PYTHON, UNFORESEEN_BELOW, REMAINS_OF_PYTHON
)
OF_COPIES = Spread(BEST_TOGETHER, WORST_TOGETHER, UNFORESEEN_ABOVE_OF_COPIES, UNFORESEEN_BELOW)
# What computation can hide at least and at most: nothing is pulled in, nothing is unforeseen.
OF_BOUNDS = Spread(1.0, 1.0, 0.0, 0.0, is_bound=True)
