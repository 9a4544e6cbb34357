"""What is wrong with the capture, as far as it shows only in the finished trace: half of it missing, clocks that disagree.

A launch without work is a call that launches a kernel and to which no device event belongs. Work without a launch is a
kernel that no recorded call launched. Clocks disagree where work begins before the call that launched it. Each is told from
a share of all launches or kernels on, since a recording always begins and ends in the middle of something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import polars as pl

from stepscope.analysis.capture_quality.content import content_problems
from stepscope.analysis.capture_quality.step_marks import missing_steps
from stepscope.analysis.cut_off import may_lack_device, steps_without_work
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.xla.damage import program_problems
from stepscope.registers.calibration.launches import HOST_DEVICE_CLOCK_NS
from stepscope.registers.policy.capture import DEFECT_SHOWN, DEFECT_WARNS
from stepscope.trace.columns import repeated
from stepscope.trace.frames import kept, take, take_smallest
from stepscope.trace.graphs import captured_calls
from stepscope.trace.judged_texts import contains
from stepscope.trace.lookup import events_named
from stepscope.trace.problems import Problem, problem
from stepscope.trace.snapshot import is_snapshot
from stepscope.trace.trace import Trace
from stepscope.units import duration, percent

_LAUNCHES = r"(?i)launch(cooperative)?kernel|moduleLaunch"


def capture_problems(trace: Trace, steps: Steps) -> list[Problem]:
    """The problems of one rank's capture."""
    return [found for check in capture_checks(trace, steps) for found in check()]


def capture_checks(trace: Trace, steps: Steps) -> list[Callable[[], Iterator[Problem]]]:
    """The checks, each by itself; of a memory snapshot its reader has said all."""
    if is_snapshot(trace):
        return []
    of_trace = (_cut_off, _launches, _unlaunched, _clocks, program_problems)
    return [
        partial(_steps, trace, steps),
        *(partial(check, trace) for check in of_trace),
        partial(content_problems, trace, steps),
    ]


def _steps(trace: Trace, steps: Steps) -> Iterator[Problem]:
    count = 0 if steps.is_whole else steps.windows["step"].n_unique()
    if count == 0:
        yield from missing_steps(trace, steps)
    if count == 1:
        yield problem("one-step", "The recording has 1 step.")


def _cut_off(trace: Trace) -> Iterator[Problem]:
    """A file that ends before the device's work of all steps, of which its reader has not said so."""
    if "no-device-events" in trace.problems["code"]:
        return
    lacking, of = steps_without_work(trace)
    if may_lack_device(trace):
        yield problem(
            "no-device-events",
            "The file ends before anything that a device did, which is written last: whether the job uses one is unknown.",
            case="unknown",
            count=lacking,
        )
    elif lacking:
        which = f"{lacking:,} of {of:,} steps" if of > 1 else "the step"
        yield problem(
            "no-device-events",
            f"The recording was cut off before the device's work of {which} was written.",
            case="cut",
            count=lacking,
        )


def _launches(trace: Trace) -> Iterator[Problem]:
    """Launches whose kernels are missing, while other kernels are there. In a file of several ranks their ids collide."""
    if trace.kernels.is_empty() or "two-workers" in trace.problems["code"]:
        return
    events = trace.events
    launching = events_named(events, lambda names: contains(names, _LAUNCHES))
    calls, captured = events["id"].filter(launching & (events["kind"] == "runtime")), captured_calls(trace)
    if len(captured):
        calls = calls.filter(~calls.is_in(captured.implode()))
    if not _links_kernels(trace):
        yield from _unlinked(trace, calls)
        return
    launches = trace.links["from"].filter(trace.links["why"] == "launch")
    lost = len(calls) - _count_among(calls, launches, len(events))
    if len(calls) and lost >= DEFECT_SHOWN * len(calls):
        yield problem(
            "launches-without-work",
            f"{{count}} of {len(calls):,} launches ({percent(lost / len(calls))}) have no kernel in the profile.",
            case=_case(lost, len(calls), DEFECT_WARNS),
            count=lost,
        )


def _links_kernels(trace: Trace) -> bool:
    launched = trace.links["to"].filter(trace.links["why"] == "launch")
    return _count_among(trace.kernels["event"], launched, len(trace.events)) > 0


def _count_among(events: pl.Series, some: pl.Series, count: int) -> int:
    """How many of these are among some of all `count` events."""
    among = repeated(False, count, pl.Boolean).scatter(some, True)
    return int(take(among, events).sum())


def _unlinked(trace: Trace, calls: pl.Series) -> Iterator[Problem]:
    """Calls and kernels are both there, and the recorder wrote nothing that connects them."""
    if calls.is_empty():
        return
    yield problem(
        "work-without-launch",
        "None of {count} kernels is linked to the call that launched it, although calls were recorded.",
        case="unlinked",
        count=len(trace.kernels),
    )


def _unlaunched(trace: Trace) -> Iterator[Problem]:
    """Kernels of which no call is known, while it is known of others."""
    events = trace.events
    launched = trace.links["to"].filter(trace.links["why"] == "launch")
    known = take(events["start_ns"], launched)
    # What runs before the first launched kernel was launched before the recording: every recording begins so.
    kernels = events["id"].filter((events["kind"] == "kernel") & (events["start_ns"] >= take_smallest(known)))
    lost = len(kernels) - _count_among(kernels, launched, len(events))
    if len(launched) and len(kernels) and lost >= DEFECT_SHOWN * len(kernels):
        yield problem(
            "work-without-launch",
            f"{{count}} of {len(kernels):,} kernels ({percent(lost / len(kernels))}) belong to no recorded call.",
            case=_case(lost, len(kernels), DEFECT_WARNS),
            count=lost,
        )


def _clocks(trace: Trace) -> Iterator[Problem]:
    """Work that begins before its launch by more than rounding."""
    links = kept(trace.links[["from", "to"]], trace.links["why"] == "launch")
    start = trace.events["start_ns"]
    early = take(start, links["from"]) - take(start, links["to"])
    wrong = early.filter(early > HOST_DEVICE_CLOCK_NS)
    if len(wrong):
        yield problem(
            "clock-inversion",
            f"{{count}} of {len(links):,} launches, by up to {duration(wrong.max())}.",
            case=_case(len(wrong), len(links), DEFECT_SHOWN),
            count=len(wrong),
        )


def _case(found: int, of: int, warns: float) -> str:
    """Below this share the defect is only a note."""
    return "" if found >= warns * of else "few"
