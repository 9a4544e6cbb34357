"""A job of many ranks with its truth: what each model makes, and what the scorer reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.ranks.case import Case
from stepscope.trace.trace import Trace

Traces = Iterator[tuple[int, Trace]]


@dataclass(frozen=True)
class TrueClock:
    """How far a rank's clock is off at the start, and how fast that grows."""

    offset_ns: float
    drift: float

    def show(self, true_ns: float) -> float:
        """What the clock shows at this true time."""
        return true_ns * (1 + self.drift) + self.offset_ns


@dataclass(frozen=True)
class Job:
    """`cost` is the share of the job's time that the late rank costs; `causes` are those that are right to name.

    `moments` are true times at which clocks are compared; `spent_ns` has for each group and sequence number how long each rank's
    collective takes once it has arrived, where the files say which call is which.
    """

    case: Case
    cost: float
    causes: tuple[str | None, ...]
    start_unix_ns: int
    clocks: Mapping[int, TrueClock]
    moments: tuple[float, ...]
    read: Callable[[], Traces]
    spent_ns: Mapping[tuple[str, int], Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A way to make jobs: `draw` takes a seed, a kind and the number of ranks; `attempts` until a job costs enough."""

    name: str
    draw: Callable[[int, str, int], Job]
    attempts: int
    cases: int
    healthy: int
    required: bool  # whether a broken promise fails the run
