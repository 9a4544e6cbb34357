"""What is to be said of a recording that never came to its end: where it ends, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from stepscope.formats.ring.facts import Facts
from stepscope.trace.problems import Problem
from stepscope.units import count

_MISSING = {
    "torch": "PyTorch's own part is missing, which it writes when a window ends: ops, kernels, copies, allocations and stacks.",
    "tensorflow": "TensorFlow's own part is missing, which it writes when a window ends: ops, kernels, allocations and stacks.",
    "jax": "JAX's own part is missing, which it writes when a window ends: ops, kernels, compilations and stacks.",
    "host": "Of sampled functions, those are missing that were still running.",
}
_SHORTER = "For a profile with everything in it, record fewer steps, or several short windows, so that one is written before the end."
_WHY = "If nobody killed it: `dmesg` tells of the kernel's out-of-memory killer, the launcher's log of other ranks and time limits."


@dataclass(frozen=True)
class End:
    """Where a recording ends: in which step, inside of which annotations, and how many events did not stay."""

    unix_ns: int
    step: int
    inside: list[str]
    overwritten: int
    is_running: bool

    def told(self) -> str:
        """In words."""
        inside = f", inside of {' > '.join(self.inside[-3:])}" if self.inside else ""
        return f"{_moment(self.unix_ns)}, in step {count(self.step)}{inside}"


def ring_problems(known: Facts, end: End) -> Iterator[Problem]:
    """The problems of a ring, the gravest first."""
    missing = _MISSING.get(known.backend, "What a framework records is missing.")
    if known.window is None:
        missing = "No window was open then, so that there are only the times of the steps."
    kept = f"What was kept up to then is here: steps, annotations and telemetry. {missing}"
    if end.is_running:
        yield Problem(
            "capture-running",
            "The recording is still going on",
            f"The process has not written its profile yet. Read was what it kept until {end.told()}. {missing}",
            "Open it again when the window is over.",
            "info",
        )
    elif known.has_ended:
        yield Problem(
            "capture-unwritten",
            "The profile could not be written",
            f"The window ended at {end.told()}, and writing it failed. {kept}",
            "The warning on the job's stderr, and the sidecar if there is one, say why: mostly the disk was full.",
        )
    else:
        yield Problem(
            "capture-killed",
            "The process ended before its profile was written",
            f"The recording ends at {end.told()}: the process was killed, crashed or left by os._exit. {kept}",
            f"{_SHORTER} {_WHY}",
        )
    if end.overwritten:
        yield Problem(
            "buffer-overflow",
            "The recorder's buffer was full",
            "{count} older events were overwritten by newer ones: the ring of a recording has a bounded size.",
            "Record fewer steps.",
            count=end.overwritten,
        )


def _moment(unix_ns: int) -> str:
    try:
        moment = datetime.fromtimestamp(unix_ns / 1e9, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return "an unknown time"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"
