"""Run-to-run noise: what two runs of one job differ by, beyond the spread of their steps. Measured by `python -m benchmarks.diff`.

Shares are standard errors. How much single names vary is measured on the pair at hand (`scatter`); the shares here are lower bounds,
and the fallback where too few names are available. The hard case is a host that is barely fast enough for its device: if it is a
little slower, the device waits where it did not before. Two runs cannot show by how much, so dispatch and similar parts may differ
by half of what the host's speed is worth (its change, at least SPEED_NOISE, times the shorter step), but by no more than the device
waited for them in total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stepscope.diffs.noise.estimate import RunNoise
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, NEITHER, Speeds, find_clock
from stepscope.diffs.noise.scatter import Scatter
from stepscope.registers.calibration.runs import (
    HOST_NOISE_NS,
    LAG_SHARE,
    NAMED_NOISE,
    OP_NOISE_DEVICE,
    OP_NOISE_HOST,
    RUN_NOISE_DEVICE,
    RUN_NOISE_HOST,
    RUN_NOISE_NEITHER,
    SPEED_NOISE,
    UNEXPLAINED_NOISE,
    UNKNOWN_NOISE_DEVICE,
    UNKNOWN_NOISE_HOST,
    VAGUE_NOISE,
    WRONG_SPEED,
)
from stepscope.registers.policy.diffs import LEAST_SPEED_RATIO

# Of one op, where the scatter of the others is known; of sums of many, where it is; and where nothing is.
OP_NOISE = {DEVICE: OP_NOISE_DEVICE, HOST: OP_NOISE_HOST, NEITHER: RUN_NOISE_NEITHER}
RUN_NOISE = {DEVICE: RUN_NOISE_DEVICE, HOST: RUN_NOISE_HOST, NEITHER: RUN_NOISE_NEITHER}
RUN_NOISE_UNKNOWN = {
    DEVICE: UNKNOWN_NOISE_DEVICE,
    HOST: UNKNOWN_NOISE_HOST,
    NEITHER: RUN_NOISE_NEITHER,
}
# The device waits for a host that is behind: these come and go with its speed.
LAGGING = ("dispatch", "python", "unexplained")
# To which name a short gap falls, or whether to none, is partly chance.
VAGUE = ("dispatch", "unexplained", "device_gap")


@dataclass(frozen=True)
class Runs:
    """`step_ns` is the longer of the mean steps. `lagging_ns`: the time in LAGGING parts per step, of the run with more of it."""

    speeds: Speeds
    step_ns: float
    shorter_step_ns: float
    lagging_ns: float

    def of_op(self, clock: str, link: float = 0.0) -> RunNoise:
        """Of an op or a kernel; `link` is the noise of its copies between host and device, see `host_device_link`."""
        known = clock in self.speeds.scatter or clock == NEITHER
        scatter = self._scatter(clock).of_one
        least = (OP_NOISE if known else RUN_NOISE_UNKNOWN)[clock]
        # The lower bound is not added to the scatter that was measured: only what it exceeds that by.
        rest = math.sqrt(max(0.0, least * least - scatter * scatter))
        return RunNoise(math.hypot(rest, link), scatter=scatter)

    def of_part(self, part: str, link: float = 0.0) -> RunNoise:
        """Of a part of the account."""
        clock = find_clock(part)
        share, least = self._run_noise(clock), self._lag_ns if part in LAGGING else 0.0
        if part == "unexplained":
            share, least = VAGUE_NOISE, math.hypot(least, UNEXPLAINED_NOISE * self.step_ns)
        return RunNoise(
            math.hypot(share, link), math.hypot(least, _find_least(clock)), self._scatter(clock).of_all
        )

    def of_name(self, part: str, larger: float) -> RunNoise:
        """Of a name in a part, with its share of the lag."""
        lag = (
            self._lag_ns * min(1.0, larger / self.lagging_ns) if part in LAGGING and self.lagging_ns else 0.0
        )
        if part == "unexplained":
            lag = math.hypot(lag, UNEXPLAINED_NOISE * self.step_ns)
        clock = find_clock(part)
        share = max(VAGUE_NOISE if part in VAGUE else NAMED_NOISE, self._run_noise(clock))
        return RunNoise(share, math.hypot(lag, _find_least(clock)), self._scatter(clock).of_one)

    def of_step(self, sizes: dict[str, float]) -> RunNoise:
        """Of the whole step, by how much of it follows which clock."""
        whole = sum(sizes.values()) or 1.0
        share = math.hypot(*(self._run_noise(clock) * size / whole for clock, size in sizes.items()))
        scatter = math.hypot(*(self._scatter(clock).of_all * size / whole for clock, size in sizes.items()))
        return RunNoise(share, self._lag_ns, scatter)

    def _run_noise(self, clock: str) -> float:
        known = self.speeds.knows(clock) or clock == NEITHER
        return (RUN_NOISE if known else RUN_NOISE_UNKNOWN)[clock]

    def _scatter(self, clock: str) -> Scatter:
        """With the error of the speed itself: the further it is from 1, the less it is the same for all calls."""
        measured = self.speeds.scatter.get(clock, Scatter())
        ratio = self.speeds.ratio(clock)
        wrong = WRONG_SPEED * abs(math.log(max(ratio, LEAST_SPEED_RATIO)))
        return Scatter(math.hypot(measured.of_one, wrong), math.hypot(measured.of_all, wrong))

    @property
    def _lag_ns(self) -> float:
        """What the host's speed may be worth."""
        speed = math.hypot(SPEED_NOISE, self.speeds.ratio(HOST) - 1)
        return min(LAG_SHARE * speed * self.shorter_step_ns, self.lagging_ns)


def _find_least(clock: str) -> float:
    return HOST_NOISE_NS if clock == HOST else 0.0
