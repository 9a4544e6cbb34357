"""What can be wrong with trace JSON, in words: where it is, how much was passed over, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stepscope.trace.problems import Problem, Problems, problem

# By what the scanner counts.
_COUNTED = {
    "untimed": problem("untimed-events", "{count} events have no readable `ts`; they were left out."),
    "out_of_range": problem(
        "time-out-of-range", "{count} events have times beyond ±126 years; they were left out."
    ),
    "without_phase": problem("no-phase", "{count} events have no `ph`; they were left out."),
    "without_duration": problem(
        "no-duration", "{count} events of phase X have no readable `dur`; they are kept with a duration of 0."
    ),
    "repaired": problem(
        "unescaped-quotes", "{count} strings have unescaped quotes; they were read as part of the text."
    ),
    "broken_texts": problem(
        "broken-text",
        "{count} strings have bytes that are not UTF-8, or escapes that are not JSON; those bytes are shown as �.",
    ),
}


def note_counted(problems: Problems, counts: Mapping[str, int], first_bad: int = -1) -> None:
    """Add a problem for everything that was counted."""
    if counts.get("bad_events"):
        problems.add(_bad_events(counts["bad_events"], counts["bad_bytes"], first_bad))
    elif counts.get("bad_bytes"):
        problems.add(_bad_bytes(counts["bad_bytes"], first_bad))
    for name, found in _COUNTED.items():
        if counts.get(name):
            problems.add(replace(found, count=counts[name]))


def _bad_events(count: int, size: int, first: int) -> Problem:
    detail = (
        f"{{count}} places in the list of events are not valid JSON, the first at byte {first:,}; "
        f"{size:,} bytes were skipped."
    )
    return problem("bad-events", detail, count=count)


def _bad_bytes(size: int, first: int) -> Problem:
    detail = f"{size:,} bytes from byte {first:,} on are not valid JSON and were skipped."
    return problem("bad-events", detail, case="bytes")


def cut(size: int, at: int) -> Problem:
    """The document has `size` bytes and no end; what starts at byte `at` was not finished."""
    lost = f"the {size - at:,} bytes from byte {at:,} on are part of an event and were left out"
    detail = (
        f"The file ends at byte {size:,} without closing its list of events; "
        f"{lost if size > at else 'no part of an event was lost'}."
    )
    return problem("truncated", detail)


def trailing(at: int, count: int) -> Problem:
    """The document ended at byte `at`, and `count` bytes follow."""
    return problem(
        "trailing-bytes", f"{count:,} bytes after byte {at:,} are not part of the trace and were not read."
    )


def oversized(name: str, size: int) -> Problem:
    """A member next to the events that is far larger than any header."""
    return problem("large-member", f"The member {name!r} is longer than {size:,} bytes; it was not read.")
