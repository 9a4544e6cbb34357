"""What is wrong with the capture, as far as it shows only in the finished trace: half of it missing, clocks that disagree.

A launch without work is a call that launches a kernel and to which no device event belongs. Work without a launch is a
kernel that no recorded call launched. Clocks disagree where work begins before the call that launched it. Each is told from
a share of all launches or kernels on, since a recording always begins and ends in the middle of something.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.capture_quality.content import content_problems
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.xla.damage import program_problems
from stepscope.registers.calibration.launches import HOST_DEVICE_CLOCK_NS
from stepscope.registers.policy.capture import DEFECT_SHOWN, DEFECT_WARNS
from stepscope.trace.problems import Problem, Severity
from stepscope.trace.trace import Trace
from stepscope.units import duration

_LAUNCHES = r"(?i)launch(cooperative)?kernel|moduleLaunch"


def capture_problems(trace: Trace, steps: Steps) -> list[Problem]:
    """The problems of one rank's capture."""
    return [
        *_steps(steps),
        *_launches(trace),
        *_unlaunched(trace),
        *_clocks(trace),
        *content_problems(trace, steps),
        *program_problems(trace),
    ]


def _steps(steps: Steps) -> Iterator[Problem]:
    count = steps.windows["step"].n_unique()
    if count == 0:
        yield Problem(
            "no-steps",
            "No steps were found",
            "Nothing marks the steps and nothing repeats, so that all figures are over the whole recording.",
            "Call profiler.step() at the end of each step, annotate the step, or name an annotation with --step-name.",
        )
    if count == 1:
        yield Problem(
            "one-step",
            "Only one step was recorded",
            "One step says nothing about what is usual, and the first of a run is often slow.",
            "Record several steps after a warm-up.",
        )


def _launches(trace: Trace) -> Iterator[Problem]:
    """Launches whose kernels are missing, while other kernels are there. In a file of several ranks their ids collide."""
    if trace.kernels.is_empty() or "two-workers" in trace.problems["code"]:
        return
    names = trace.events["name"].unique().drop_nulls()
    launching = names.filter(names.cast(pl.String).str.contains(_LAUNCHES))
    calls = trace.events.filter((pl.col("kind") == "runtime") & pl.col("name").is_in(launching.implode()))
    answered = trace.links.filter(pl.col("why") == "launch")["from"].unique()
    lost = len(calls) - int(calls["id"].is_in(answered.implode()).sum())
    if len(calls) and lost >= DEFECT_SHOWN * len(calls):
        yield Problem(
            "launches-without-work",
            "Kernels are missing",
            f"{{count}} of {len(calls):,} launches ({lost / len(calls):.0%}) have no kernel in the profile.",
            "Warm the profiler up for a step, synchronise before it stops, and record fewer steps at once.",
            _severity(lost / len(calls)),
            lost,
        )


def _unlaunched(trace: Trace) -> Iterator[Problem]:
    """Kernels of which no call is known, while it is known of others."""
    launched = trace.links.filter(pl.col("why") == "launch")["to"].unique()
    known = trace.events["start_ns"].gather(launched)
    # What runs before the first launched kernel was launched before the recording: every recording begins so.
    kernels = trace.events.filter(pl.col("kind") == "kernel", pl.col("start_ns") >= (known.min() or 0))
    lost = len(kernels) - int(kernels["id"].is_in(launched.implode()).sum())
    if len(launched) and len(kernels) and lost >= DEFECT_SHOWN * len(kernels):
        yield Problem(
            "work-without-launch",
            "Kernels whose launch was not recorded",
            f"{{count}} of {len(kernels):,} kernels ({lost / len(kernels):.0%}) belong to no recorded call; no op or step can be named for them.",
            "Often work from before the recording: warm up for a step, and synchronise before it starts.",
            _severity(lost / len(kernels)),
            lost,
        )


def _clocks(trace: Trace) -> Iterator[Problem]:
    """Work that begins before its launch by more than rounding."""
    links = trace.links.filter(pl.col("why") == "launch")
    start = trace.events["start_ns"]
    early = start.gather(links["from"]) - start.gather(links["to"])
    wrong = early.filter(early > HOST_DEVICE_CLOCK_NS)
    if len(wrong):
        yield Problem(
            "clock-inversion",
            "Work that begins before its launch",
            f"{{count}} of {len(links):,} launches; by {duration(wrong.max())} at most: the clocks of host and device disagree.",
            "Times between host and device are off by that much; a newer driver or profiler mends it.",
            "warning" if len(wrong) >= DEFECT_SHOWN * len(links) else "info",
            len(wrong),
        )


def _severity(share: float) -> Severity:
    return "warning" if share >= DEFECT_WARNS else "info"
