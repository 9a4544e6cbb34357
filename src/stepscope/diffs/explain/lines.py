"""The few lines that explain most of the change, the largest first.

Each cause of a longer or shorter step is named once: a larger batch or another precision before the ops that it slows down, an op
before its kernels, a named wait before its part. Only significant differences make a line. Work comes before what waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stepscope.diffs.data.judged import JudgedRows
from stepscope.diffs.data.model import Batch, Line, Row, Tail
from stepscope.diffs.data.samples import HELD
from stepscope.diffs.explain import wording
from stepscope.diffs.explain.call_counts import CallChanges, explain_call_counts
from stepscope.diffs.explain.ranks import WAITS, RankChange
from stepscope.registers.policy.diffs import (
    CAUSE_OF_CHANGE,
    DIFF_LIKELY_LINES,
    DIFF_LINES,
    NEARLY_ALL_OF_CHANGE,
    PRECISION_ABSENT,
    PRECISION_PRESENT,
    SAME_CAUSE,
    WAIT_CAUSES_DISPATCH,
    WHOLE_CHANGE,
    WORK_BEFORE_WAITS,
)

_OF_COLLECTIVES = re.compile(r"record_param_comms|c10d::|(nccl|gloo|mpi|ucc|xccl):")
_BUSY_BY_OP = ("compute", "host_compute")
_SHOWN_BY_A_WAIT = ("dispatch",)
_SHOWN_BY_A_NEW_WAIT = (*_SHOWN_BY_A_WAIT, "input", "python")


@dataclass(frozen=True)
class Evidence:
    """What the lines are made from. `names`: the rows by name, where names mean the same in both runs."""

    rows: JudgedRows
    step: Row
    names: Sequence[Row]
    batch: Batch | None
    tail: Tail | None = None
    ranks: Sequence[RankChange] = ()
    is_exact: bool = False  # both are one recording


@dataclass(frozen=True)
class PrecisionChange:
    """Matrix products that moved from one number format to another; `relative` to their time in the first."""

    before: str
    after: str
    difference: float
    noise: float | None
    relative: float | None


def explain(evidence: Evidence) -> list[Line]:
    """At most DIFF_LINES of them."""
    general = [*_explain_batch(evidence), *_explain_precision(evidence)]
    general.sort(key=lambda line: -abs(line.difference))
    by_rank = [_explain_ranks(change) for change in evidence.ranks]
    timed = _explain_times(evidence)
    if evidence.step.significant and not (general or by_rank or timed):
        timed = _explain_largest_parts(evidence)
    if by_rank:
        _note_waiting_ranks(timed)
    lines = _order_by_direction([*general, *by_rank, *timed], evidence.step)
    _share_change(lines, evidence.step)
    rows = evidence.rows
    changes = CallChanges(rows.waits, rows.scopes, rows.functions, rows.calls)
    return [*lines, *explain_call_counts(changes, lines), *_explain_memory(rows)][:DIFF_LINES]


def _explain_times(evidence: Evidence) -> list[Line]:
    """What takes longer or less long, causes first."""
    rows = evidence.rows
    lines = [*_explain_names(evidence), *_explain_collectives(rows), *_explain_tail(evidence.tail)]
    lines += _explain_ops(rows, lines)
    lines += _explain_kernels(rows, lines)
    lines += _explain_unnamed_parts(evidence, lines)
    lines += _explain_ops_on_host(rows, lines)
    lines = put_causes_first(_sort_by_size(lines))
    if evidence.is_exact:
        lines = _put_work_first(lines, evidence.step)
    return _put_new_wait_first(evidence, lines)


def _order_by_direction(lines: Sequence[Line], step: Row) -> list[Line]:
    """What explains the change before what is against it, where the step changed significantly; else as they are."""
    if not step.significant:
        return list(lines)
    return sorted(lines, key=lambda line: line.unit == "ns" and line.difference * step.difference < 0)


def _share_change(lines: Sequence[Line], step: Row) -> None:
    """Give lines their share of the step's change, where that is significant: together no more than all of it.

    One that exceeds what the lines before leave is at least in part the same time as theirs, or concurrent, and gets none. Another
    batch is certain, and all of the change where it makes more than that.
    """
    left = 1.0
    for line in lines:
        if not step.significant or not step.difference or line.unit != "ns":
            continue
        share = line.difference / step.difference
        if line.kind == "batch":
            share = min(share, left)
        if share < 0 or share <= left + WHOLE_CHANGE - 1:
            line.share = round(min(share, left), 4) or None
            left = max(0.0, left - max(0.0, share))


def _explain_batch(evidence: Evidence) -> Iterator[Line]:
    batch = evidence.batch
    if batch is not None and batch.ratio != 1:
        yield Line(
            title=wording.describe_batch(batch),
            kind="batch",
            difference=sum(row.difference for row in evidence.rows.ops),
            detail=wording.describe_batch_detail(batch, evidence.step),
            name="batch",
        )


def find_precision_change(rows: Sequence[Row]) -> PrecisionChange | None:
    """The time of matrix products (by number format) that went from one format to another, if it did."""
    known = [row for row in rows if row.name != "unknown"]
    whole = sum(row.a or 0 for row in known) or 1.0, sum(row.b or 0 for row in known) or 1.0
    moved = [row for row in known if row.significant or _is_new_format(row, whole)]
    gone = max((row for row in moved if row.difference < 0), key=lambda row: -row.difference, default=None)
    come = max((row for row in moved if row.difference > 0), key=lambda row: row.difference, default=None)
    if gone is None or come is None or (gone.b or 0) > SAME_CAUSE * (gone.a or 0):
        return None
    difference = sum(row.difference for row in moved)
    relative = difference / gone.a if gone.a else None
    return PrecisionChange(gone.name, come.name, difference, come.noise, relative)


def _is_new_format(row: Row, whole: tuple[float, float]) -> bool:
    """Whether one run has the format and the other practically not: that is certain, whatever its time."""
    less, more = sorted([(row.a or 0) / whole[0], (row.b or 0) / whole[1]])
    return less < PRECISION_ABSENT and more > PRECISION_PRESENT


def _explain_precision(evidence: Evidence) -> Iterator[Line]:
    change = find_precision_change(evidence.rows.precision)
    if change is not None:
        yield Line(
            title=wording.describe_precision(change.before, change.after),
            kind="precision",
            difference=change.difference,
            noise=change.noise,
            relative=change.relative,
            name="precision",
        )


def _explain_ranks(change: RankChange) -> Line:
    """What only some ranks do; the others wait for them."""
    main = next((row for row in change.names if row.difference / change.difference > SAME_CAUSE), None)
    title, where = wording.describe_part(change.part), f"on {len(change.ranks)} of {change.of_ranks} ranks"
    if main is not None:
        title, most = wording.describe_named(change.part, main.name), []
    else:
        most = [f"{row.name} {wording.format_time_change(row.difference)}" for row in change.names]
    return Line(
        title=f"{wording.describe_ranks(change.ranks)}: {title}",
        kind=change.part,
        difference=change.difference,
        noise=change.noise,
        detail=", ".join([where, *most]),
        name=main.name if main is not None else change.part,
        ranks=list(change.ranks),
    )


def _note_waiting_ranks(lines: Sequence[Line]) -> None:
    """Mark the waits that a slow rank causes on the others as such."""
    for line in lines:
        if line.kind in WAITS:
            line.detail = line.detail or wording.OTHERS_WAIT


def _explain_largest_parts(evidence: Evidence) -> list[Line]:
    """Where the step changed significantly and no part of it by itself: the likely causes."""
    same_way = [row for row in evidence.rows.parts if row.difference * evidence.step.difference > 0]
    lines = [_explain_part(row, evidence.names) for row in same_way[:DIFF_LIKELY_LINES]]
    for line in lines:
        line.detail = wording.NOT_SIGNIFICANT_ALONE
    return lines


def _explain_tail(tail: Tail | None) -> Iterator[Line]:
    if tail is not None and tail.significant:
        yield Line(
            title=wording.describe_slow_steps(tail),
            kind="tail",
            difference=tail.b_excess_ns - tail.a_excess_ns,
            detail=wording.describe_tail_cause(tail),
            name="slow steps",
        )


def _explain_names(evidence: Evidence) -> Iterator[Line]:
    """What the device waited for, by name."""
    for row in evidence.names:
        if row.significant:
            yield _make_line(row, row.part or "", wording.describe_named(row.part, row.name))


def _explain_ops(rows: JudgedRows, lines: Sequence[Line]) -> list[Line]:
    """Ops, except where lines name them already: copies as what the device waited for, collectives by their own names."""
    has_copies = any(line.kind == "copy" for line in lines)
    has_collectives = any(line.kind == "collective" for line in lines)
    changed = {row.name: row for row in rows.ops_by_name if row.significant}
    explained = [
        _explain_op(row, [each for each in rows.ops if each.name == row.name]) for row in changed.values()
    ]
    explained += [
        _make_line(row, "op", wording.describe_op(row))
        for row in rows.ops
        if row.significant and row.name not in changed
    ]
    return [
        line
        for line in explained
        if not (has_copies and "copy" in line.title.lower())
        and not (has_collectives and _OF_COLLECTIVES.match(line.title))
    ]


def _explain_op(row: Row, fine: Sequence[Row]) -> Line:
    """The op with one scope and shape if that is nearly all of its change, else all its calls together."""
    alone = [each for each in fine if abs(each.difference) >= NEARLY_ALL_OF_CHANGE * abs(row.difference)]
    if alone and alone[0].difference * row.difference > 0:
        return _make_line(alone[0], "op", wording.describe_op(alone[0]))
    line = _make_line(row, "op", row.name)
    line.detail = line.detail or f"across {len(fine)} shapes or scopes"
    return line


def _explain_ops_on_host(rows: JudgedRows, lines: Sequence[Line]) -> list[Line]:
    """In a modified copy, ops that are longer on the host only."""
    if rows.waits or any(map(_is_work, lines)):
        return []
    explained = [_make_line(row, "op", row.name) for row in rows.ops_on_host if row.significant]
    for line in explained:
        line.detail = "; ".join(filter(None, [wording.ON_HOST, line.detail]))
    return explained


def _explain_kernels(rows: JudgedRows, lines: Sequence[Line]) -> list[Line]:
    """Kernels that no op launched, as far as the profile shows."""
    if any(line.kind == "op" for line in lines):
        return []
    return [
        _make_line(row, "kernel", f"kernel {row.name}")
        for row in rows.kernels
        if row.significant and row.op is None
    ]


def _explain_collectives(rows: JudgedRows) -> list[Line]:
    changed = [row for row in rows.collectives if row.significant]
    return [_make_line(row, "collective", f"collective {row.name}") for row in changed]


def _explain_memory(rows: JudgedRows) -> list[Line]:
    changed = [row for row in rows.memory if row.significant]
    return [
        _make_line(row, "memory", row.name if HELD in row.name else f"peak memory of {row.name}")
        for row in changed
    ]


def _explain_unnamed_parts(evidence: Evidence, lines: Sequence[Line]) -> list[Line]:
    """Parts that changed though no line names anything in them."""
    kinds = {line.kind for line in lines}
    explained = []
    for row in evidence.rows.parts:
        by_op = row.name in _BUSY_BY_OP and kinds & {"op", "kernel"}
        if row.significant and row.name not in kinds and not by_op:
            explained.append(_explain_part(row, evidence.names))
    return explained


def _explain_part(part: Row, names: Sequence[Row]) -> Line:
    """The part, by the name that is most of its change, if one is."""
    for row in names:
        if row.part == part.name and abs(row.difference) > SAME_CAUSE * abs(part.difference):
            return _make_line(part, part.name, wording.describe_named(part.name, row.name))
    return _make_line(part, part.name, wording.describe_part(part.name))


def _make_line(row: Row, kind: str, title: str) -> Line:
    return Line(
        title=title,
        kind=kind,
        difference=row.difference,
        unit=row.unit,
        noise=row.noise,
        relative=row.relative,
        detail=wording.describe_row(row),
        name=row.name,
    )


def _is_work(line: Line) -> bool:
    """Whether it is not a part of the account: a collective by name, not the part of that name."""
    return line.kind in ("op", "kernel") or (line.kind == "collective" and line.name != line.kind)


def _sort_by_size(lines: Iterable[Line]) -> list[Line]:
    """The largest difference first; work counts for a little more than what waits for it."""
    return sorted(
        lines,
        key=lambda line: abs(line.difference) * (WORK_BEFORE_WAITS if _is_work(line) else 1.0),
        reverse=True,
    )


def _put_work_first(lines: list[Line], step: Row) -> list[Line]:
    """In a modified copy, ops and kernels are what was modified; where the device idles depends on how events were moved."""
    work = [line for line in lines if _is_work(line)]
    if max((abs(line.difference) for line in work), default=0.0) < CAUSE_OF_CHANGE * abs(step.difference):
        return lines
    return [*work, *(line for line in lines if line not in work)]


def put_causes_first(lines: list[Line]) -> list[Line]:
    """After a wait the queue is empty, and the device waits for dispatch: that comes after the wait that caused it.

    Where only one run waits there, whatever its host does next is no longer hidden either: reading input, and Python.
    """
    waits = [line for line in lines if line.kind == "sync"]
    largest = max(waits, key=lambda line: abs(line.difference), default=None)
    if largest is None:
        return lines
    exposed = _SHOWN_BY_A_NEW_WAIT if _is_of_one_run(largest) else _SHOWN_BY_A_WAIT
    caused = [
        line
        for line in lines
        if line.kind in exposed and 0 < WAIT_CAUSES_DISPATCH * line.difference / largest.difference < 1
    ]
    rest = [line for line in lines if line not in caused]
    at = rest.index(largest) + 1
    for line in caused:
        line.detail = line.detail or wording.QUEUE_IS_EMPTY
    return [*rest[:at], *caused, *rest[at:]]


def _is_of_one_run(line: Line) -> bool:
    return line.relative is None or line.relative == -1


def _put_new_wait_first(evidence: Evidence, lines: list[Line]) -> list[Line]:
    """First a wait for the device that only one run has and that is as long as the change: even where the device idles elsewhere for it."""
    change = evidence.step.difference
    row = next(iter(evidence.rows.waits), None)
    if row is None or abs(row.difference) < SAME_CAUSE * abs(change):
        return lines
    if not evidence.is_exact and (not evidence.step.significant or row.difference * change < 0):
        return lines
    waits = [line for line in lines if line.kind == "sync"]
    waits = waits or [_make_line(row, "sync", wording.describe_named("sync", row.name))]
    return [*waits, *(line for line in lines if line not in waits)]
