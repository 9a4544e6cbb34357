"""What a straggler costs without a recorder, where hosts compute: the recorder takes time of its own on every rank, and not of all alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import median

from stepscope.ranks.stragglers.find import ALWAYS, SOMETIMES, Straggler
from stepscope.ranks.stragglers.pace import Pace

_SLOW_HOST, _MORE_WORK = "host_compute", "work"


def without_recorder(found: Straggler, paces: Sequence[Pace]) -> Straggler | None:
    """Its cost in the unprofiled step, where the capture timed that on all ranks; None where it costs nothing there."""
    made = _unrecorded(found, paces)
    return made if made.late_ns_per_step > 0 else None


def _unrecorded(found: Straggler, paces: Sequence[Pace]) -> Straggler:
    if not 0 < found.share < 1:
        return found
    if found.kind == SOMETIMES:
        return _now_and_then(found, paces)
    ratio = _unprofiled_ratio(paces)
    if found.kind != ALWAYS or ratio is None or not 0 < ratio < 1:
        return found
    if found.cause == _SLOW_HOST:
        return found  # it is as much slower at recording as at all else
    if found.cause == _MORE_WORK:
        # The recorder takes its time by the call: without the straggler the step has the calls of the others to record.
        others = 1 - found.share - (1 - ratio) * _calls_of_others(found.rank, paces)
        return _with_share(found, 1 - others / ratio)
    return _with_share(found, found.share / sqrt(ratio))  # see `_now_and_then`


def _now_and_then(found: Straggler, paces: Sequence[Pace]) -> Straggler:
    """Beside the unprofiled steps in which it is not late.

    The recorder slows what code a rank runs meanwhile, but not what it waits for, and a profile does not always show which it was: the middle of both.
    """
    known = [each.unprofiled_median_ns for each in paces if each.unprofiled_median_ns]
    if len(known) < len(paces) or 2 * found.steps_late >= found.steps:
        return found
    of_its_own = found.late_ns_per_step / (found.late_ns_per_step + median(known))
    return _with_share(found, sqrt(found.share * max(found.share, of_its_own)))


def _calls_of_others(rank: int, paces: Sequence[Pace]) -> float:
    """How many ops the others call, as a share of what this rank calls; one where that is not known, and never more."""
    calls: dict[bool, list[float]] = {True: [], False: []}
    for each in paces:
        if not each.called.is_empty():
            calls[each.called["rank"][0] == rank].append(float(each.called["launches"].sum()))
    if not calls[True] or not calls[False]:
        return 1.0
    return min(1.0, median(calls[False]) / calls[True][0])


def _unprofiled_ratio(paces: Sequence[Pace]) -> float | None:
    """The unprofiled step to the profiled one; ranks that meet in each step have one in common."""
    known = [each.unprofiled_ratio for each in paces if each.unprofiled_ratio is not None]
    return median(known) if known and len(known) == len(paces) else None


def _with_share(found: Straggler, share: float) -> Straggler:
    """In time of the recording, like all of its figures."""
    factor = min(1.0, max(0.0, share)) / found.share
    return replace(
        found,
        late_ns=round(factor * found.late_ns),
        late_ns_per_step=round(factor * found.late_ns_per_step),
        share=factor * found.share,
    )
