"""How long a step takes: what every share, saving and speed-up of a report is measured by.

The step without the profiler, where the capture timed a run of such steps between two waits for the device; else the step as
recorded. The choice is made here, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.lazy import dataclass

if TYPE_CHECKING:
    from stepscope.trace.trace import Trace

UNPROFILED, RECORDED = "unprofiled", "recorded"


@dataclass(frozen=True)
class Basis:
    """A mean step, and its spread where it is known; `count` steps were timed, `host_ns` of each are the host's own."""

    ns: float
    source: str
    low_ns: float | None = None
    high_ns: float | None = None
    count: int = 0
    host_ns: float | None = None


def step_basis(trace: Trace, recorded_ns: float, source: str) -> Basis:
    """`recorded_ns` is the mean of the recorded steps, which come from `source`: the capture timed those that it marked."""
    known = trace.info.capture.get("unprofiled_step") if source == "marker" else None
    if not isinstance(known, dict) or not _is_positive(known.get("mean_ns")):
        return Basis(recorded_ns, RECORDED)
    return Basis(
        ns=float(known["mean_ns"]),
        source=UNPROFILED,
        low_ns=_number(known.get("low_ns")),
        high_ns=_number(known.get("high_ns")),
        count=int(_number(known.get("count")) or 0),
        host_ns=_number(known.get("host_ns")),
    )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _number(value: Any) -> float | None:
    return float(value) if _is_positive(value) else None
