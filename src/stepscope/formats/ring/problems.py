"""The problems of a recording that never ended: where it stops, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from stepscope.formats.ring.facts import Facts
from stepscope.trace.problems import Problem, problem
from stepscope.units import count

_MISSING = {
    "torch": "What PyTorch writes when a window ends is missing: ops, kernels, copies, allocations and stacks.",
    "tensorflow": "What TensorFlow writes when a window ends is missing: ops, kernels, allocations and stacks.",
    "jax": "What JAX writes when a window ends is missing: ops, kernels, compilations and stacks.",
    "host": "Sampled functions that were still running are missing.",
}


@dataclass(frozen=True)
class End:
    """Where a recording ends: in which step, inside of which annotations, and how many events did not stay."""

    unix_ns: int
    step: int
    inside: list[str]
    overwritten: int
    is_running: bool

    def moment(self) -> str:
        """In words."""
        inside = f", inside of {' > '.join(self.inside[-3:])}" if self.inside else ""
        return f"{_moment(self.unix_ns)}, in step {count(self.step)}{inside}"


def ring_problems(known: Facts, end: End) -> Iterator[Problem]:
    """The problems of a ring, the gravest first."""
    missing = _MISSING.get(known.backend, "What a framework records is missing.")
    if known.window is None:
        missing = "No window was open then, so only the times of the steps are known."
    if end.is_running:
        yield problem("capture-running", f"The ring has events up to {end.moment()}. {missing}")
    elif known.has_ended:
        yield problem("capture-unwritten", f"The window ended at {end.moment()}. {missing}")
    else:
        yield problem("capture-killed", f"The recording ends at {end.moment()}. {missing}")
    if end.overwritten:
        yield problem(
            "buffer-overflow",
            "{count} older events in the ring were overwritten by newer ones.",
            count=end.overwritten,
        )


def _moment(unix_ns: int) -> str:
    try:
        moment = datetime.fromtimestamp(unix_ns / 1e9, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return "an unknown time"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"
