"""How long a step takes, and how that is known: a sentence that is part of the one that opens every rendering."""

from __future__ import annotations

from stepscope import units
from stepscope.analysis.basis import UNPROFILED
from stepscope.names import cut_middle
from stepscope.reports.model.report import Steps

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
        return f"{takes} as recorded ({_mean(steps.count)}; without the profiler: unknown)."
    spread = ""
    if known.low_ns is not None and known.high_ns is not None:
        spread = f", {units.duration(known.low_ns)} to {units.duration(known.high_ns)}"
    recorded = "" if steps.mean_ns is None else f"; {units.duration(steps.mean_ns)} while recorded"
    return f"{takes} without the profiler ({_mean(known.count)}{spread}{recorded})."


def step_label(steps: Steps) -> str:
    """For a card with the basis as its figure."""
    if steps.source == "whole":
        return "the whole recording"
    if steps.basis == UNPROFILED:
        return "a step without the profiler"
    return f"{_mean(steps.count)}, as recorded"


def _mean(count: int) -> str:
    return "one step" if count == 1 else f"mean of {count:,} steps"
