"""Slow steps that come back: one in n unprofiled steps is slow, as at the end of an epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import mean, median_low

from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.steps import SLOW_STEPS_RECUR
from stepscope.statistics.slow_steps import slow_limit
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Rhythm:
    """Every `period`-th step takes `slow_ns`, the others `usual_ns`, on the host and without the profiler."""

    period: int
    usual_ns: float
    slow_ns: float

    @property
    def mean_ns(self) -> float:
        """Of all steps."""
        return self.usual_ns + (self.slow_ns - self.usual_ns) / self.period

    @property
    def usual_share(self) -> float:
        """A usual step as a share of the mean one."""
        return self.usual_ns / self.mean_ns


def find_rhythm(trace: Trace) -> Rhythm | None:
    """What the capture timed around the window; none where slow steps are rare, or come at any time."""
    runs = _runs_around(trace)
    limit = slow_limit([length for run in runs for length in run])
    gaps = [gap for run in runs for gap in _gaps(run, limit)]
    if len(gaps) < SLOW_STEPS_RECUR:
        return None
    period = median_low(gaps)
    if period < 2 or gaps.count(period) <= MAJORITY * len(gaps):
        return None
    usual = [length for run in runs for length in run if length <= limit]
    slow = [length for run in runs for length in run if length > limit]
    # The median of the slow ones: the first step of a job also warms up.
    return Rhythm(period, mean(usual), median_low(slow))


def lengths_around(trace: Trace) -> list[int]:
    """How long the steps before and after the window took on the host, as the capture timed them."""
    return [length for run in _runs_around(trace) for length in run]


def numbered_lengths(trace: Trace) -> dict[int, int]:
    """The same by the numbers of the steps."""
    found: dict[int, int] = {}
    for run in _noted_around(trace):
        first = run.get("first") if isinstance(run, dict) else None
        if isinstance(first, int):
            found |= dict(enumerate(_durations(run), first))
    return found


def _runs_around(trace: Trace) -> list[list[int]]:
    """Those before the window and those after it."""
    return [run for run in map(_durations, _noted_around(trace)) if run]


def _noted_around(trace: Trace) -> tuple[object, ...]:
    """As the capture noted them; none where the steps are not whole ones."""
    noted = trace.info.capture.get("steps")
    if not isinstance(noted, dict) or trace.info.capture.get("regions") is not None:
        return ()
    return noted.get("before"), noted.get("after")


def _durations(run: object) -> list[int]:
    """Sidecars come from elsewhere: anything but lengths counts as none."""
    found = run.get("durations_ns") if isinstance(run, dict) else None
    lengths = found if isinstance(found, list) else []
    return [each for each in lengths if isinstance(each, int) and each > 0]


def _gaps(run: Iterable[int], limit: float) -> Iterator[int]:
    """From each slow step of the run to the next."""
    places = [place for place, length in enumerate(run) if length > limit]
    return (later - earlier for earlier, later in pairwise(places))
