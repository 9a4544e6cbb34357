"""A recording without steps, and what marks them next time: by the profiler that wrote the file, and by the framework."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.capture_quality.vendors import VENDOR_TOOLS
from stepscope.analysis.steps.find import Steps
from stepscope.trace.problems import Problem, problem
from stepscope.trace.trace import Trace, TraceInfo

# What these files hold has no steps: allocations without work, or the last collectives of a rank.
_STEPLESS = ("flight_recorder", "memory_timeline", "pprof")
_OR_NAMED = " If an annotation of the file marks the steps, name it with --step-name."


def missing_steps(trace: Trace, steps: Steps) -> Iterator[Problem]:
    """`no-steps`, unless the whole recording was asked for or the file cannot have any."""
    info = trace.info
    if steps.confidence == "high" or info.format in _STEPLESS:
        return
    is_annotated = bool((trace.events["kind"] == "annotation").any())
    what = "No annotation marks the steps" if is_annotated else "There is no annotation"
    yield problem(
        "no-steps",
        f"{what}, and nothing repeats.",
        case=_marked_by(info),
        or_named=_OR_NAMED if is_annotated else "",
    )


def _marked_by(info: TraceInfo) -> str:
    """Whose way of marking steps the recording needs; other profilers' is not known."""
    if info.capture or info.format == "stepscope-ring":
        return "stepscope"
    if info.format in VENDOR_TOOLS:
        return info.format
    return info.framework if info.framework in ("pytorch", "jax", "tensorflow") else ""
