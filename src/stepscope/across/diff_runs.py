"""What two runs of one job differ by, beside what the spread of their steps shows. Measured by `python -m benchmarks.diff`.

Shares are standard errors, of the figure itself. A host that is hardly fast enough for its device is the hard case: a little
slower, and the device waits where it did not before. By how much nobody can tell from two runs, so dispatch and the like
may differ by half of what the host's speed is worth (its change, at least SPEED_NOISE, times the shorter step), but by no more than
all that the device waited for in that way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepscope.across.diff_speed import DEVICE, HOST, NEITHER, Speeds

# With the speed of host and device taken out, and where it is not known.
RUN_NOISE = {DEVICE: 0.015, HOST: 0.06, NEITHER: 0.1}
RUN_NOISE_UNKNOWN = {DEVICE: 0.03, HOST: 0.15, NEITHER: 0.1}
SPEED_NOISE = 0.06
LAG_SHARE = 0.5
# The device waits for a host that is behind: these come and go with its speed.
LAGGING = ("dispatch", "python", "unexplained")
# To which name a short gap falls, or whether to none, is partly chance.
VAGUE = ("dispatch", "unexplained")
VAGUE_NOISE, NAMED_NOISE = 0.25, 0.12
UNEXPLAINED_OF_STEP = 0.01

Amount = tuple[float, float]  # a share of the figure, and ns


@dataclass(frozen=True)
class Runs:
    """`step_ns` is the longer of the mean steps. `lagging_ns`: the longer of both runs' times in LAGGING parts, per step."""

    speeds: Speeds
    step_ns: float
    shorter_step_ns: float
    lagging_ns: float

    def by_clock(self, clock: str) -> float:
        """The share by which a figure of that clock differs."""
        known = self.speeds.knows(clock) or clock == NEITHER
        return (RUN_NOISE if known else RUN_NOISE_UNKNOWN)[clock]

    @property
    def lag_ns(self) -> float:
        """What the host's speed may be worth."""
        changes = [each.ratio - 1 for each in self.speeds.found if each.what == HOST]
        speed = math.hypot(SPEED_NOISE, *changes)
        return min(LAG_SHARE * speed * self.shorter_step_ns, self.lagging_ns)

    def of_part(self, part: str) -> Amount:
        """Of a part of the account."""
        if part == "unexplained":
            return VAGUE_NOISE, math.hypot(self.lag_ns, UNEXPLAINED_OF_STEP * self.step_ns)
        return 0.0, self.lag_ns if part in LAGGING else 0.0

    def of_name(self, part: str, larger: float) -> Amount:
        """Of a name in a part, with its share of what the host's speed is worth."""
        lag = self.lag_ns * min(1.0, larger / self.lagging_ns) if part in LAGGING and self.lagging_ns else 0.0
        if part == "unexplained":
            return VAGUE_NOISE, math.hypot(lag, UNEXPLAINED_OF_STEP * self.step_ns)
        return VAGUE_NOISE if part in VAGUE else NAMED_NOISE, lag

    def of_step(self, sizes: dict[str, float]) -> Amount:
        """Of the whole step, by how much of it goes by which clock."""
        whole = sum(sizes.values()) or 1.0
        share = math.hypot(*(self.by_clock(clock) * size / whole for clock, size in sizes.items()))
        return share, self.lag_ns
