"""The phrases of a diff: what a line of its explanation is about, how often something is called, how figures change."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope import units
from stepscope.diffs.data.model import Batch, Row, Tail
from stepscope.names import short_name
from stepscope.registers.policy.diffs import (
    DIFF_NAMED_OPS,
    DIFF_WHOLE_COUNTS,
    SHARE_AS_FACTOR,
    SHARE_WITHOUT_DIGITS,
)

TWO_PROGRAMS = "A and B are two programs."
NOT_SIGNIFICANT_ALONE = "not significant by itself"
QUEUE_IS_EMPTY = "the queue is empty after the wait"
OTHERS_WAIT = "the other ranks are waiting"
ON_HOST = "on the host"
# What precedes the name of an event that is charged to a part.
_BEFORE_NAMES = {
    "sync": "waiting for the device in",
    "copy": "copying:",
    "input": "waiting for input in",
    "python": "Python code:",
    "allocator": "allocating:",
    "compile": "compiling:",
    "io": "file access:",
    "device_gap": "device gap before",
    "host_collective": "waiting for other ranks in",
    "profiler": "profiler:",
    "unexplained": "unexplained time around",
}


def format_share_change(value: float) -> str:
    """+3.2 %, −12 %, or a factor where it is large."""
    if value > SHARE_AS_FACTOR:
        return f"{value + 1:.0f}×"
    digits = 0 if abs(value) >= SHARE_WITHOUT_DIGITS else 1
    text = f"{abs(100 * value):.{digits}f} %"
    return f"{'−' if value < 0 else '+'}{text}"


def format_time_change(ns: float) -> str:
    """+1.20 ms, −3.00 µs."""
    return f"{'−' if ns < 0 else '+'}{units.duration(abs(ns))}"


def display_name(name: str) -> str:
    """A name as people say it."""
    return short_name(name)


def describe_part(part: str) -> str:
    """A part without a name: `host compute`."""
    return part.replace("_", " ")


def describe_named(part: str | None, name: str) -> str:
    """A name in a part: `waiting for input in load`."""
    before = _BEFORE_NAMES.get(part or "", f"{describe_part(part or '')}:")
    return f"{before} {display_name(name)}"


def describe_op(row: Row) -> str:
    """An op, with its scope where it has one."""
    return f"{row.name} in {row.scope}" if row.scope else row.name


def describe_row(row: Row) -> str:
    """What else differs about a row: that one run does not have it, its calls, or its shapes."""
    if row.matched_by in ("a", "b"):
        return f"only in {row.matched_by.upper()}"
    if row.a_calls is not None and row.b_calls is not None and row.a_calls != row.b_calls:
        return f"{row.a_calls:g} → {row.b_calls:g} calls"
    return f"{row.shapes}" if row.shapes else ""


def describe_batch(batch: Batch) -> str:
    """How B's batch compares with A's."""
    return f"B's batch is {batch.ratio:.3g}× A's"


def describe_batch_detail(batch: Batch, step: Row) -> str:
    """What shows it, and what it makes of the time per sample."""
    if not step.a or step.b is None:
        return f"{batch.example}; the time per sample is unknown"
    return f"{batch.example}; time per sample {format_share_change(step.b / batch.ratio / step.a - 1)}"


def describe_precision(before: str, after: str) -> str:
    """Matrix products in another number format."""
    return f"matrix products run in {describe_formats(before, after)}"


def describe_formats(before: str, after: str) -> str:
    """The two number formats."""
    return f"{after} instead of {before}"


def describe_slow_steps(tail: Tail) -> str:
    """How many of how many."""
    (most, slow, steps), (few, others, among) = sorted(
        [("A", tail.a_slow, tail.a_steps), ("B", tail.b_slow, tail.b_steps)], key=lambda side: -side[1]
    )
    take = "takes" if slow == 1 else "take"
    count = f"{slow} of {steps} steps in {most} {take} {tail.times:.3g} times as long as usual"
    return f"{count} ({few}: {others or 'none'} of {among})"


def describe_tail_cause(tail: Tail) -> str:
    """What most of the excess of slow steps goes to; empty where that is unknown."""
    if tail.part is None:
        return ""
    return f"mostly {describe_named(tail.part, tail.name) if tail.name else describe_part(tail.part)}"


def describe_two_programs(common: float) -> str:
    """That most of what is called is not the same."""
    return (
        f"A and B are two programs: they have {100 * common:.0f} % of their calls in common, so the speed of the machine "
        "is unknown, and rows by name compare different work."
    )


def describe_ranks(ranks: Sequence[int]) -> str:
    """`rank 2`, `ranks 0, 3`."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def describe_one_sided_scope(row: Row) -> str:
    """A scope that only one run has ops in."""
    return f"only {'B' if row.b else 'A'} has {row.name}"


def describe_ops_of_scope(row: Row) -> str:
    """How many ops a scope of one run has, and the longest of them."""
    count = row.b or row.a or 0
    ops = row.note.split(", ")
    few = ", ".join(ops[:DIFF_NAMED_OPS]) + (", …" if len(ops) > DIFF_NAMED_OPS else "")
    return f"{count:.4g} op call{'' if count == 1 else 's'} per step: {few}"


def describe_wait(name: str) -> str:
    """A call that waits for the device."""
    return f"{name} (waits for the device)"


def describe_function(name: str) -> str:
    """A function of Python."""
    return f"Python function {display_name(name)}"


def describe_calls(what: str, a: float | None, b: float | None) -> str:
    """How often something is called per step in each run."""
    if not a or not b:
        side, count = ("B", b) if b else ("A", a)
        return f"{what} is called {_count_times(count)} per step, only in {side}"
    return f"{what} is called {_count_times(a)} per step in A, {_count_times(b)} in B"


def _count_times(count: float | None) -> str:
    if count == 1:
        return "once"
    return f"{count or 0:,.0f} times" if (count or 0) >= DIFF_WHOLE_COUNTS else f"{count:.3g} times"
