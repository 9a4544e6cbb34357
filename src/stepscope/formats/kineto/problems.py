"""What a Kineto trace lacks that its header or its launches promise."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problem, Severity

_LOGS: tuple[tuple[str, str, Severity], ...] = (
    ("ERROR", "The profiler logged errors", "error"),
    ("WARNING", "The profiler logged warnings", "warning"),
)
_LINES_SHOWN = 3
_LOG_TEXT = 500
_LAUNCH = r"LaunchKernel|GraphLaunch|hipLaunch|MemcpyAsync|urEnqueueKernel"


def note_kineto_problems(draft: Draft, header: dict[str, Any]) -> None:
    """Add what a reader of the trace should know before trusting it."""
    _logged(draft, header)
    _device_events(draft)
    # What a cut file lacks may have stood in the part that is gone.
    if not any(problem.code in ("truncated", "damaged-gzip") for problem in draft.problems.all()):
        _promised(draft)
    _zero_times(draft)


def _logged(draft: Draft, header: dict[str, Any]) -> None:
    for key, title, severity in _LOGS:
        found = header.get(key) or []
        lines = [str(line) for line in found] if isinstance(found, list) else [str(found)]
        if lines:
            text = "; ".join(lines[:_LINES_SHOWN])[:_LOG_TEXT]
            more = f"; and {len(lines) - _LINES_SHOWN:,} more" if len(lines) > _LINES_SHOWN else ""
            draft.problems.add(Problem("capture-error", title, text + more, "", severity, len(lines)))


def _device_events(draft: Draft) -> None:
    kinds = set(draft.events["kind"].unique().drop_nulls().to_list())
    if kinds & {"kernel", "copy", "memset"} or "runtime" not in kinds:
        return
    names = draft.events.filter(pl.col("kind") == "runtime")["name"].cast(pl.String)
    launches = int(names.str.contains(_LAUNCH).sum())
    if launches:
        draft.problems.add(
            Problem(
                "no-device-events",
                "Launches, but no work on the device",
                "{count} launches were recorded and not one kernel or copy: device time is missing altogether.",
                "CUPTI delivered nothing: another profiler holds it, privileges are missing, or the window was never warmed up.",
                "error",
                launches,
            )
        )


def _promised(draft: Draft) -> None:
    """Options that were on, without what they should have recorded."""
    options = draft.info.capture_options
    kinds = set(draft.events["kind"].unique().drop_nulls().to_list())
    ops = draft.ops
    checks = (
        (
            "with_stack",
            "python" in kinds,
            "stacks",
            "Python 3.11+ needs a recent torch; or pass experimental_config with verbose=True.",
        ),
        (
            "profile_memory",
            "memory" in kinds,
            "memory",
            "Memory events are written only for allocations inside the window.",
        ),
        ("record_shapes", len(ops) == 0 or ops["shapes"].null_count() < len(ops), "shapes", ""),
    )
    for option, present, what, fix in checks:
        if options.get(option) and not present:
            title = f"{option} was on, but there are no {what}"
            draft.problems.add(
                Problem(
                    "option-without-data",
                    title,
                    f"The header says {option}, and no event carries {what}.",
                    fix,
                )
            )


def _zero_times(draft: Draft) -> None:
    is_device = draft.events["kind"].is_in(["kernel", "copy", "memset"])
    zero = int((is_device & (draft.events["start_ns"] == 0)).sum())
    if zero:
        draft.problems.add(
            Problem(
                "zero-time",
                "Device events at time 0",
                "{count} device events have a time stamp of 0: CUPTI lost their times.",
                "Update the driver; leave these events out of any sum.",
                count=zero,
            )
        )
