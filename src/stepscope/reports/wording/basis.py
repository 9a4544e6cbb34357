"""How long a step takes, and how that is known: a sentence that is part of the one that opens every rendering."""

from __future__ import annotations

from stepscope import units
from stepscope.analysis.basis import UNPROFILED
from stepscope.names import cut_middle
from stepscope.reports.model.report import Steps
from stepscope.reports.wording.facts import INFLATED

_REGION = 40  # characters of its name


def sentence(steps: Steps) -> str:
    """What shares, savings and speed-ups are measured by."""
    if steps.basis_ns is None:
        return "No steps were found, so all figures are of the whole recording."
    if steps.source == "whole":
        length = units.duration(steps.basis_ns)
        return f"No steps were found, so all figures are of the whole recording, {length}."
    which = "A step" if steps.region is None else f"A step of the region {cut_middle(steps.region, _REGION)}"
    takes = f"{which} takes {units.duration(steps.basis_ns)}"
    known = steps.unprofiled
    if known is None:
        return f"{takes} as recorded ({_mean(steps.count)}; {_estimate(steps)})."
    spread = ""
    if known.low_ns is not None and known.high_ns is not None:
        spread = f", {units.duration(known.low_ns)} to {units.duration(known.high_ns)}"
    recorded = "" if steps.mean_ns is None else f"; {units.duration(steps.mean_ns)} while recorded"
    return f"{takes} without the profiler ({_mean(known.count)}{spread}{recorded})."


def _estimate(steps: Steps) -> str:
    """What is known of a step that the capture did not time without the profiler: never more than what the profiler adds."""
    basis, found = steps.basis_ns or 0, steps.estimated_ns
    if steps.inflation is not None and steps.inflation_source == "measured":
        found = round(basis / steps.inflation)
    if not found or basis < INFLATED * found:
        return "not timed without the profiler"
    return f"without the profiler about {units.duration(found)}, estimated"


def step_label(steps: Steps) -> str:
    """For a card with the basis as its figure."""
    if steps.source == "whole":
        return "the whole recording"
    if steps.basis == UNPROFILED:
        return "a step without the profiler"
    return f"{_mean(steps.count)}, as recorded"


def _mean(count: int) -> str:
    return "one step" if count == 1 else f"mean of {count:,} steps"
