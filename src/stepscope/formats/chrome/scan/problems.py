"""What can be wrong with trace JSON, in words: where it is, how much was passed over, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stepscope.trace.problems import Problem, Problems

_AGAIN = "Record the profile again; a newer profiler escapes names correctly."
# By what the scanner counts.
_COUNTED = {
    "untimed": Problem(
        "untimed-events",
        "Events without a time stamp",
        "{count} events have no readable `ts` and cannot be placed; they were left out.",
        _AGAIN,
    ),
    "out_of_range": Problem(
        "time-out-of-range",
        "Events far outside of time",
        "{count} events have times beyond ±126 years; they were left out.",
        _AGAIN,
    ),
    "without_phase": Problem(
        "no-phase",
        "Events without a phase",
        "{count} events have no `ph` and cannot be understood; they were left out.",
    ),
    "without_duration": Problem(
        "no-duration",
        "Complete events without a duration",
        "{count} events of phase X have no readable `dur`; they are kept with a duration of 0.",
    ),
    "repaired": Problem(
        "unescaped-quotes",
        "Names with unescaped quotes",
        "{count} strings hold quotes that the writer forgot to escape; they were read as part of the text.",
        "PyTorch escapes them since mid-2026.",
        "info",
    ),
    "broken_texts": Problem(
        "broken-text",
        "Names that are not valid UTF-8",
        "{count} strings hold bytes that are not UTF-8, or escapes that are not JSON; those bytes are shown as �.",
        severity="info",
    ),
}


def note_counted(problems: Problems, counts: Mapping[str, int], first_bad: int = -1) -> None:
    """Add a problem for everything that was counted."""
    if counts.get("bad_events"):
        problems.add(_bad_events(counts["bad_events"], counts["bad_bytes"], first_bad))
    elif counts.get("bad_bytes"):
        problems.add(_bad_bytes(counts["bad_bytes"], first_bad))
    for name, problem in _COUNTED.items():
        if counts.get(name):
            problems.add(replace(problem, count=counts[name]))


def _bad_events(count: int, size: int, first: int) -> Problem:
    detail = (
        f"{{count}} places in the list of events are not valid JSON, the first at byte {first:,}; "
        f"{size:,} bytes were passed over. Everything around them was read."
    )
    return Problem("bad-events", "Events that are not valid JSON", detail, _AGAIN, "error", count)


def _bad_bytes(size: int, first: int) -> Problem:
    detail = f"{size:,} bytes from byte {first:,} on are not valid JSON and were passed over."
    return Problem("bad-events", "Bytes that are not valid JSON", detail, _AGAIN)


def cut(size: int, at: int) -> Problem:
    """The document has `size` bytes and no end; what begins at byte `at` was not finished."""
    lost = f"the {size - at:,} bytes from byte {at:,} on are part of an event and were left out"
    detail = (
        f"The file ends at byte {size:,} without closing its list of events; "
        f"{lost if size > at else 'no part of an event was lost'}. All complete events were kept."
    )
    return Problem(
        "truncated",
        "The file is cut short",
        detail,
        "The job ended while it wrote, the disk was full, or a copy broke off. Copy or record it again.",
        "error",
    )


def trailing(at: int, count: int) -> Problem:
    """The document ended at byte `at`, and `count` bytes follow."""
    return Problem(
        "trailing-bytes",
        "Something follows the end of the trace",
        f"{count:,} bytes after byte {at:,} are not part of the trace and were not read.",
        severity="info",
    )


def oversized(name: str, size: int) -> Problem:
    """A member beside the events that is far larger than any header."""
    return Problem(
        "large-member",
        "Something large beside the events",
        f"The member {name!r} is longer than {size:,} bytes, which no header is; it was not read.",
        severity="info",
    )
