"""The few lines that explain most of the change, the largest first.

What made the step longer or shorter is told once: a larger batch or another precision before the ops that it made slower,
an op before its kernels, a named wait before its part. Only differences that are no accident make a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope import units
from stepscope.diffs.data.model import Batch, Line, Row, Tail
from stepscope.diffs.explain.diff_often import how_often, shown
from stepscope.diffs.explain.diff_order import causes_first, is_work, largest_first, work_first
from stepscope.diffs.explain.ranks import WAITS, RankChange

LINES = 8
LIKELY = 3
NEARLY_ALL = 0.8
HARDLY, NOTABLE = 0.01, 0.2  # of the time of matrix products
SAME_CAUSE = 0.5  # of the change of matching ops: what a batch or a precision must explain to be named for it
WHOLE = 1.1  # of the change: by a little more than all of it a line may be off; calls beside each other take far more
_OF_COLLECTIVES = re.compile(r"record_param_comms|c10d::|(nccl|gloo|mpi|ucc|xccl):")
_BUSY_BY_OP = ("compute", "host_compute")


@dataclass(frozen=True)
class Evidence:
    """The judged rows."""

    step: Row
    parts: Sequence[Row]
    names: Sequence[Row]
    ops: Sequence[Row]
    ops_by_name: Sequence[Row]
    kernels: Sequence[Row]
    collectives: Sequence[Row]
    memory: Sequence[Row]
    precision: Sequence[Row]
    calls: Sequence[Row]
    batch: Batch | None
    tail: Tail | None = None
    ranks: Sequence[RankChange] = ()
    waits: Sequence[Row] = ()  # calls that wait for the device, where their number differs
    scopes: Sequence[Row] = ()  # that one run only has ops in
    functions: Sequence[Row] = ()  # of Python, that one run only calls
    ops_on_host: Sequence[Row] = ()  # by name, of one recording
    is_exact: bool = False  # both are one recording


def explain(found: Evidence) -> list[Line]:
    """At most LINES of them."""
    general = [*_batch(found), *_precision(found)]
    timed = [*_named(found), *_collectives(found), *_tail(found)]
    timed += _ops(found, timed)
    timed += _kernels(found, timed)
    timed += _unnamed_parts(found, timed)
    timed += _ops_on_host(found, timed)
    timed = causes_first(largest_first(timed))
    if found.is_exact:
        timed = work_first(timed, found.step)
    timed = _more_waits(found, timed)
    general.sort(key=lambda line: -abs(line.difference))
    by_rank = [_of_ranks(change) for change in found.ranks]
    if found.step.significant and not (general or by_rank or timed):
        timed = _largest_parts(found)
    if by_rank:
        _wait_for_them(timed)
    lines = [*general, *by_rank, *timed]
    for line in lines:
        line.share = _share(line, found.step)
    often = how_often(found.waits, found.scopes, found.functions, found.calls, lines)
    return [*lines, *often, *_memory(found)][:LINES]


def _ops_on_host(found: Evidence, told: Sequence[Line]) -> list[Line]:
    """In a copy, what somebody made longer on the host only."""
    if found.waits or any(map(is_work, told)):
        return []
    lines = [_line(row, "op", row.name) for row in found.ops_on_host if row.significant]
    for line in lines:
        line.detail = "; ".join(filter(None, ["on the host", line.detail]))
    return lines


def _more_waits(found: Evidence, timed: list[Line]) -> list[Line]:
    """First a wait for the device that only one run has, as long as its step is longer: also where the device idles elsewhere for it."""
    change = found.step.difference
    row = next(iter(found.waits), None)
    if row is None or abs(row.difference) < SAME_CAUSE * abs(change):
        return timed
    if not found.is_exact and (not found.step.significant or row.difference * change < 0):
        return timed
    told = [line for line in timed if line.kind == "sync"]
    told = told or [_line(row, "sync", f"{_verb('sync')} {row.name}")]
    return [*told, *(line for line in timed if line not in told)]


def _share(line: Line, step: Row) -> float | None:
    """Of the step's change, if that is one."""
    if not step.significant or not step.difference or line.unit != "ns":
        return None
    share = line.difference / step.difference
    return round(min(share, 1.0), 4) if share <= WHOLE else None


def _of_ranks(change: RankChange) -> Line:
    """What only some ranks do; the others wait for them."""
    numbers = ", ".join(map(str, change.ranks))
    who = f"rank {numbers}" if len(change.ranks) == 1 else f"ranks {numbers}"
    alone = next((row for row in change.names if row.difference / change.difference > SAME_CAUSE), None)
    title = _words(change.part)
    if alone is not None:
        title = f"{_verb(change.part)} {shown(alone.name)}"
    most = [
        f"{row.name} {'+' if row.difference > 0 else '−'}{units.duration(abs(row.difference))}"
        for row in change.names
    ]
    where = f"on {len(change.ranks)} of {change.of_ranks} ranks"
    return Line(
        title=f"{who}: {title}",
        kind=change.part,
        difference=change.difference,
        noise=change.noise,
        detail=where if alone is not None else ", ".join([where, *most]),
        name=alone.name if alone is not None else change.part,
        ranks=list(change.ranks),
    )


def _wait_for_them(lines: Sequence[Line]) -> None:
    """Waiting that a slow rank makes the others do is told as that."""
    for line in lines:
        if line.kind in WAITS:
            line.detail = line.detail or "the other ranks wait there"


def _largest_parts(found: Evidence) -> list[Line]:
    """Where the step changed for sure and no part of it by itself: what it most likely is."""
    same_way = [row for row in found.parts if row.difference * found.step.difference > 0]
    lines = [_line(row, row.name, _mostly(row, found.names)) for row in same_way[:LIKELY]]
    for line in lines:
        line.detail = "by itself this may be chance"
    return lines


def _batch(found: Evidence) -> Iterator[Line]:
    if found.batch is None or found.batch.ratio == 1:
        return
    ratio = found.batch.ratio
    more = f"{ratio:g} times the batch" if ratio > 1 else f"a batch of {ratio:.2g} of the size"
    yield Line(
        title=f"B has {more}",
        kind="batch",
        difference=sum(row.difference for row in found.ops),
        detail=f"{found.batch.example}; per sample the step takes {_per_sample(found.step, ratio)}.",
        name="batch",
    )


def _per_sample(step: Row, ratio: float) -> str:
    if not step.a or step.b is None:
        return "an unknown time"
    change = step.b / ratio / step.a - 1
    return f"{100 * abs(change):.0f} % {'more' if change > 0 else 'less'}"


def _precision(found: Evidence) -> Iterator[Line]:
    """Device time that went from one number format of matrix products to another."""
    known = [row for row in found.precision if row.name != "unknown"]
    whole = sum(row.a or 0 for row in known) or 1.0, sum(row.b or 0 for row in known) or 1.0
    moved = [row for row in known if row.significant or _is_new(row, whole)]
    gone = max((row for row in moved if row.difference < 0), key=lambda row: -row.difference, default=None)
    come = max((row for row in moved if row.difference > 0), key=lambda row: row.difference, default=None)
    if gone is None or come is None or (gone.b or 0) > SAME_CAUSE * (gone.a or 0):
        return
    difference = sum(row.difference for row in moved)
    yield Line(
        title=f"matrix products run in {come.name} instead of {gone.name}",
        kind="precision",
        difference=difference,
        noise=come.noise,
        relative=difference / gone.a if gone.a else None,
        name="precision",
    )


def _is_new(row: Row, whole: tuple[float, float]) -> bool:
    """Which formats there are is no matter of chance, however long they take: one run has it, the other as good as not."""
    less, more = sorted([(row.a or 0) / whole[0], (row.b or 0) / whole[1]])
    return less < HARDLY and more > NOTABLE


def _tail(found: Evidence) -> Iterator[Line]:
    tail = found.tail
    if tail is not None and tail.significant:
        yield Line(
            title=slow_steps(tail),
            kind="tail",
            difference=tail.b_excess_ns - tail.a_excess_ns,
            detail=caused_by(tail),
            name="slow steps",
        )


def slow_steps(tail: Tail) -> str:
    """How many of how many."""
    (most, slow, steps), (few, others, among) = sorted(
        [("A", tail.a_slow, tail.a_steps), ("B", tail.b_slow, tail.b_steps)], key=lambda side: -side[1]
    )
    rest = f"none of {few}'s {among}" if not others else f"{others} of {few}'s {among}"
    take = "takes" if slow == 1 else "take"
    return f"{slow} of {most}'s {steps} steps {take} {tail.times:.3g} times as long, {rest}"


def caused_by(tail: Tail) -> str:
    """What most of that time goes to."""
    if tail.part is None:
        return ""
    return f"mostly {_verb(tail.part)} {shown(tail.name)}" if tail.name else f"mostly {_words(tail.part)}"


def _named(found: Evidence) -> Iterator[Line]:
    """What the device waited for, by name."""
    for row in found.names:
        if row.significant:
            yield _line(row, row.part or "", f"{_verb(row.part)} {shown(row.name)}")


_VERBS = {
    "sync": "waiting for the device in",
    "copy": "copying:",
    "input": "waiting for input in",
    "python": "Python code:",
    "compile": "compiling:",
    "io": "files:",
    "device_gap": "gap on the device before",
    "host_collective": "waiting for other ranks in",
    "profiler": "the profiler:",
    "unexplained": "unexplained, around",
}


def _verb(part: str | None) -> str:
    return _VERBS.get(part or "", f"{_words(part or '')}:")


def _ops(found: Evidence, told: Sequence[Line]) -> list[Line]:
    """An op with one scope and shape if that makes nearly all of its change, else all its calls together.

    Copies have been told as what the device waited for, and collectives by their own names.
    """
    copied = any(line.kind == "copy" for line in told)
    spoken = any(line.kind == "collective" for line in told)
    lines = []
    whole = {row.name: row for row in found.ops_by_name if row.significant}
    for name, row in whole.items():
        fine = [each for each in found.ops if each.name == name]
        alone = [each for each in fine if abs(each.difference) >= NEARLY_ALL * abs(row.difference)]
        if alone and alone[0].difference * row.difference > 0:
            lines.append(_op(alone[0]))
        else:
            lines.append(_line(row, "op", name))
            lines[-1].detail = lines[-1].detail or f"in {len(fine)} shapes or scopes"
    lines += [_op(row) for row in found.ops if row.significant and row.name not in whole]
    lines = [line for line in lines if not (copied and "copy" in line.title.lower())]
    return [line for line in lines if not (spoken and _OF_COLLECTIVES.match(line.title))]


def _op(row: Row) -> Line:
    return _line(row, "op", f"{row.name} in {row.scope}" if row.scope else row.name)


def _kernels(found: Evidence, told: Sequence[Line]) -> list[Line]:
    """Kernels that no op launched, as far as the profile says."""
    if any(line.kind == "op" for line in told):
        return []
    return [
        _line(row, "kernel", f"kernel {row.name}")
        for row in found.kernels
        if row.significant and row.op is None
    ]


def _collectives(found: Evidence) -> Iterator[Line]:
    for row in found.collectives:
        if row.significant:
            yield _line(row, "collective", f"collective {row.name}")


def _unnamed_parts(found: Evidence, told: Sequence[Line]) -> list[Line]:
    """Parts that changed though nothing in them is named for it."""
    kinds = {line.kind for line in told}
    lines = []
    for row in found.parts:
        by_op = row.name in _BUSY_BY_OP and kinds & {"op", "kernel"}
        if row.significant and row.name not in kinds and not by_op:
            lines.append(_line(row, row.name, _mostly(row, found.names)))
    return lines


def _mostly(part: Row, names: Sequence[Row]) -> str:
    """The part by the name that makes most of its change, if one does."""
    for row in names:
        if row.part == part.name and abs(row.difference) > SAME_CAUSE * abs(part.difference):
            return f"{_verb(part.name)} {shown(row.name)}"
    return _words(part.name)


def _words(part: str) -> str:
    return part.replace("_", " ")


def _memory(found: Evidence) -> Iterator[Line]:
    for row in found.memory:
        if row.significant:
            yield _line(row, "memory", f"peak memory of {row.name}")


def _line(row: Row, kind: str, title: str) -> Line:
    return Line(
        title=title,
        kind=kind,
        difference=row.difference,
        unit=row.unit,
        noise=row.noise,
        relative=row.relative,
        detail=_detail(row),
        name=row.name,
    )


def _detail(row: Row) -> str:
    if row.matched_by in ("a", "b"):
        return f"only in {row.matched_by.upper()}"
    if row.a_calls is not None and row.b_calls is not None and row.a_calls != row.b_calls:
        return f"{row.a_calls:g} → {row.b_calls:g} calls"
    return f"{row.shapes}" if row.shapes else ""
