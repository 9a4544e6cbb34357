"""What a straggler costs without a recorder, where hosts compute: the recorder takes time of its own on every rank, and not of all alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import median

from stepscope.ranks.stragglers.find import ALWAYS, Straggler
from stepscope.ranks.stragglers.pace import Pace
from stepscope.registers.calibration.profiler import SHARED_CORE_SAVES, SHARED_CORE_SAVES_LEAST

SHARED_CORE = "host_compute"
_WAITED_FOR = ("input", "io")


def without_recorder(found: Straggler, paces: Sequence[Pace]) -> Straggler:
    """Its cost in the unprofiled step, where the capture timed that on all ranks.

    Of now and then, a run of a few unprofiled steps shows less than the recording.
    """
    if found.kind != ALWAYS:
        return found
    is_shared, ratio = found.cause == SHARED_CORE, _unprofiled_ratio(paces)
    if ratio is None:
        return _scaled(found, SHARED_CORE_SAVES) if is_shared else found
    if not 0 < ratio < 1 or not 0 < found.share < 1:
        return found
    # The recorder slows what ranks compute, late ones and others alike. What a rank waits for takes as long as ever, or is
    # computed too: the middle.
    if not is_shared:
        return _scaled(found, min(1 / sqrt(ratio), 1 / found.share)) if found.cause in _WAITED_FOR else found
    # On a shared core the recorder's time is taken twice, and what the others take in the step is hardly shorter without it.
    left = (1 - found.share) / ratio
    return _scaled(found, min(1.0, max(SHARED_CORE_SAVES_LEAST, (1 - left) / found.share)))


def _unprofiled_ratio(paces: Sequence[Pace]) -> float | None:
    """The unprofiled step to the profiled one; ranks that meet in each step have one in common."""
    known = [each.unprofiled_ratio for each in paces if each.unprofiled_ratio is not None]
    return median(known) if known and len(known) == len(paces) else None


def _scaled(found: Straggler, share: float) -> Straggler:
    return replace(
        found,
        late_ns=round(share * found.late_ns),
        late_ns_per_step=round(share * found.late_ns_per_step),
        share=share * found.share,
    )
