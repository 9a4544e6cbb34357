"""What a Kineto trace lacks that its header or its launches promise."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.trace.draft import Draft
from stepscope.trace.problems import problem

_LOGS = {"ERROR": "logged", "WARNING": "logged-warnings"}
_LINES_SHOWN = 3
_LOG_TEXT = 500
_LAUNCH = r"LaunchKernel|GraphLaunch|hipLaunch|MemcpyAsync|urEnqueueKernel"


def note_kineto_problems(draft: Draft, header: dict[str, Any]) -> None:
    """Add what a reader of the trace should know before trusting it."""
    _logged(draft, header)
    _device_events(draft)
    # What a truncated file lacks may have been in the part that is gone.
    if not any(each.code in ("truncated", "damaged-gzip") for each in draft.problems.all()):
        _promised(draft)
    _zero_times(draft)


def _logged(draft: Draft, header: dict[str, Any]) -> None:
    for key, case in _LOGS.items():
        found = header.get(key) or []
        lines = [str(line) for line in found] if isinstance(found, list) else [str(found)]
        if lines:
            text = "; ".join(lines[:_LINES_SHOWN])[:_LOG_TEXT]
            more = f"; and {len(lines) - _LINES_SHOWN:,} more" if len(lines) > _LINES_SHOWN else ""
            draft.problems.add(problem("capture-error", text + more, case=case, count=len(lines)))


def _device_events(draft: Draft) -> None:
    kinds = set(draft.events["kind"].unique().drop_nulls().to_list())
    if kinds & {"kernel", "copy", "memset"} or "runtime" not in kinds:
        return
    names = draft.events.filter(pl.col("kind") == "runtime")["name"].cast(pl.String)
    launches = int(names.str.contains(_LAUNCH).sum())
    if launches:
        draft.problems.add(
            problem(
                "no-device-events",
                "{count} launches were recorded, but no kernel or copy: all device time is missing.",
                count=launches,
            )
        )


def _promised(draft: Draft) -> None:
    """Options that were on, without what they should have recorded."""
    options = draft.info.capture_options
    kinds = set(draft.events["kind"].unique().drop_nulls().to_list())
    ops = draft.ops
    checks = (
        ("with_stack", "python" in kinds, "stacks", "stacks"),
        ("profile_memory", "memory" in kinds, "memory", "memory"),
        ("record_shapes", len(ops) == 0 or ops["shapes"].null_count() < len(ops), "shapes", ""),
    )
    for option, present, what, case in checks:
        if options.get(option) and not present:
            draft.problems.add(
                problem(
                    "option-without-data",
                    f"The header has {option}, but no event has {what}.",
                    case=case,
                    option=option,
                    what=what,
                )
            )


def _zero_times(draft: Draft) -> None:
    is_device = draft.events["kind"].is_in(["kernel", "copy", "memset"])
    zero = int((is_device & (draft.events["start_ns"] == 0)).sum())
    if zero:
        draft.problems.add(problem("zero-time", "{count} device events have a timestamp of 0.", count=zero))
