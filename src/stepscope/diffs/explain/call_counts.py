"""How often ops, waits and functions are called per step: certain even where no difference in time is significant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from stepscope.diffs.data.match import Key, strip_line
from stepscope.diffs.data.model import Line, Row
from stepscope.diffs.data.samples import TableName
from stepscope.diffs.explain.wording import (
    describe_calls,
    describe_function,
    describe_one_sided_scope,
    describe_ops_of_scope,
    describe_wait,
)
from stepscope.diffs.noise.judge import Ground, Vectors, average, collect_vectors, make_row
from stepscope.diffs.noise.machine_speed import HOST
from stepscope.registers.calibration.launches import UNSTEADY_OP_NS
from stepscope.registers.policy.diffs import DIFF_COUNT_LINES

# Not what anybody wrote: a compiler and the derivatives that a framework takes put these in.
_MADE = re.compile(r"(copy|bitcast|tuple|while|add_any|wrapped_.*|.*fusion)(\.\d+)?")
# Libraries clear their workspace or not, by the algorithm that was quickest in a trial when the program was compiled.
_BY_TRIAL = ("memset",)


@dataclass(frozen=True)
class CallChanges:
    """Rows whose calls per step differ: waits for the device, scopes and functions of one run only, and ops."""

    waits: Sequence[Row] = ()
    scopes: Sequence[Row] = ()
    functions: Sequence[Row] = ()
    ops: Sequence[Row] = ()


def find_sporadic_ops(ground: Ground, framework: str | None, measure: str) -> set[str]:
    """Names of ops that TensorFlow recorded more often in one run, and that are too short for this to mean anything."""
    if framework != "tensorflow" or measure != HOST:
        return set()
    calls, times = _collect_by_name(ground, "calls"), _collect_by_name(ground, "host_ns")
    return {
        str(key[0])
        for key in {**calls[0], **calls[1]}
        if len({average(each.get(key, [])) for each in calls}) > 1
        and _find_quickest_call(key, calls, times) < UNSTEADY_OP_NS
    }


def _find_quickest_call(key: Key, calls: Sequence[Vectors], times: Sequence[Vectors]) -> float:
    """Of the quickest step: in others the machine may have been busy with something else."""
    return min(
        time / count
        for counted, timed in zip(calls, times, strict=True)
        for count, time in zip(counted.get(key, []), timed.get(key, []), strict=True)
        if count
    )


def compare_waits(ground: Ground) -> list[Row]:
    """Calls that wait for the device, more or less often in every step: by the time that the host spends in them."""
    changed = {row.name: row for row in _compare_counts(ground, (), "waits")}
    times = _collect_by_name(ground, "ns", "waits")
    rows = []
    for name, calls in sorted(changed.items()):
        a, b = (vectors.get((name,)) for vectors in times)
        row = make_row(name, a, b)
        row.a_calls, row.b_calls = calls.a, calls.b
        row.matched_by = "b" if a is None else "a" if b is None else "name"
        rows.append(row)
    return sorted(rows, key=lambda row: -abs(row.difference))


def compare_calls(ground: Ground, sporadic: Collection[str], measure: str) -> list[Row]:
    """Ops with a constant number of calls per step in each run, and another one in the other; first those of one run, by their time."""
    rows = _compare_counts(ground, sporadic, "ops")
    times = _collect_by_name(ground, f"{measure}_ns")

    def estimate_worth(row: Row) -> float:
        taken = sum(average(each.get((row.name,), [])) for each in times)
        return abs(row.difference) * taken / ((row.a or 0) + (row.b or 0))

    def order(row: Row) -> tuple[bool, bool, float, str]:
        return bool(row.a and row.b), bool(_MADE.fullmatch(row.name)), -estimate_worth(row), row.name

    return sorted(rows, key=order)


def _compare_counts(ground: Ground, sporadic: Collection[str], table: TableName) -> list[Row]:
    counted = _collect_by_name(ground, "calls", table)
    sides = ground.a, ground.b
    rows = []
    for key in {**counted[0], **counted[1]}:
        values = [each.get(key, [0.0] * len(side.cells)) for each, side in zip(counted, sides, strict=True)]
        steady = all(len(each) > 1 and min(each) == max(each) for each in values)
        name = str(key[0])
        if steady and values[0][0] != values[1][0] and name not in sporadic and name.lower() not in _BY_TRIAL:
            rows.append(_make_count_row(name, values[0][0], values[1][0]))
    return sorted(rows, key=lambda row: (bool(row.a and row.b), -abs(row.difference), row.name))


def _make_count_row(name: str, a: float, b: float) -> Row:
    return Row(name=name, a=a, b=b, difference=b - a, unit="calls", significant=True)


def _collect_by_name(ground: Ground, value: str, table: TableName = "ops") -> list[Vectors]:
    return [collect_vectors(side.table(table), ["name"], value, side.cells) for side in (ground.a, ground.b)]


def explain_call_counts(changes: CallChanges, lines: Sequence[Line]) -> Iterator[Line]:
    """At most DIFF_COUNT_LINES lines, after the lines that were found so far; with another batch all of this is expected."""
    if any(line.kind == "batch" for line in lines):
        return
    names = {strip_line(line.name or "") for line in lines}
    has_wait = any(line.kind == "sync" for line in lines)
    kinds = (
        [] if has_wait else [_explain_wait(row) for row in changes.waits],
        [_explain_scope(row) for row in changes.scopes],
        [_explain_function(row) for row in changes.functions if row.name not in names],
        [
            _explain_op(row)
            for row in changes.ops
            if row.name not in names and not _is_in_new_scope(row, changes.scopes)
        ],
    )
    # The first of each kind, then the second: one change often shows in several.
    in_turn = (line for turn in zip_longest(*kinds) for line in turn if line is not None)
    yield from islice(in_turn, DIFF_COUNT_LINES)


def _is_in_new_scope(op: Row, scopes: Sequence[Row]) -> bool:
    """Whether an op of one run is one of those in its new scopes."""
    return not (op.a and op.b) and any(op.name in scope.note.split(", ") for scope in scopes)


def _explain_wait(row: Row) -> Line:
    return Line(
        title=describe_calls(describe_wait(row.name), row.a_calls, row.b_calls),
        kind="sync",
        difference=(row.b_calls or 0) - (row.a_calls or 0),
        unit="calls",
        name=row.name,
    )


def _explain_scope(row: Row) -> Line:
    return _make_line(row, describe_one_sided_scope(row), describe_ops_of_scope(row))


def _explain_function(row: Row) -> Line:
    return _make_line(row, describe_calls(describe_function(row.name), row.a, row.b))


def _explain_op(row: Row) -> Line:
    return _make_line(row, describe_calls(row.name, row.a, row.b))


def _make_line(row: Row, title: str, detail: str = "") -> Line:
    return Line(
        title=title, kind="calls", difference=row.difference, unit="calls", detail=detail, name=row.name
    )
