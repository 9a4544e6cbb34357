"""In which order the lines are told: what was done before what waited for it."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.diffs.data.model import Line, Row

# What the device computes for longer, others wait for as long; a wait makes no op longer. So of both the op comes first.
AS_LONG = 1.25
ENOUGH_WORK = 0.1  # of the step's change: what changed work must be worth to be its cause
WORTH_A_WAIT = 0.1  # a wait that is less of the dispatch beside it has not caused that
_SHOWN_BY_A_WAIT = ("dispatch",)
_SHOWN_BY_A_NEW_WAIT = (*_SHOWN_BY_A_WAIT, "input", "python")


def is_work(line: Line) -> bool:
    """Not a part of the account: a collective by name, not the part of that name."""
    return line.kind in ("op", "kernel") or (line.kind == "collective" and line.name != line.kind)


def largest_first(lines: Iterable[Line]) -> list[Line]:
    """By the time that they are worth."""
    return sorted(lines, key=_size, reverse=True)


def _size(line: Line) -> float:
    return abs(line.difference) * (AS_LONG if is_work(line) else 1.0)


def work_first(lines: list[Line], step: Row) -> list[Line]:
    """In a copy, ops and kernels are what somebody changed; by how events were moved the device idles elsewhere."""
    work = [line for line in lines if is_work(line)]
    if max((abs(line.difference) for line in work), default=0.0) < ENOUGH_WORK * abs(step.difference):
        return lines
    return [*work, *(line for line in lines if line not in work)]


def causes_first(lines: list[Line]) -> list[Line]:
    """After a wait the queue is empty, and the device waits for dispatch: that is told after the wait that caused it.

    Where only one run waits there, whatever its host does next is no longer hidden either: reading input, and Python.
    """
    waits = [line for line in lines if line.kind == "sync"]
    largest = max(waits, key=lambda line: abs(line.difference), default=None)
    if largest is None:
        return lines
    shown = _SHOWN_BY_A_NEW_WAIT if _is_of_one_run(largest) else _SHOWN_BY_A_WAIT
    caused = [
        line
        for line in lines
        if line.kind in shown and 0 < WORTH_A_WAIT * line.difference / largest.difference < 1
    ]
    rest = [line for line in lines if line not in caused]
    at = rest.index(largest) + 1
    for line in caused:
        line.detail = line.detail or "the queue is empty after a wait"
    return [*rest[:at], *caused, *rest[at:]]


def _is_of_one_run(line: Line) -> bool:
    return line.relative is None or line.relative == -1
