"""Compares two runs per step and rank: judges every family of rows, explains the change and sums it up."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.diffs.case import Case
from stepscope.diffs.comparable import list_caveats
from stepscope.diffs.data.judged import JudgedRows
from stepscope.diffs.data.model import Diff, Line, Row, Rows
from stepscope.diffs.data.samples import Side
from stepscope.diffs.explain.lines import Evidence, explain, find_precision_change
from stepscope.diffs.explain.per_call import describe_lone_kernel
from stepscope.diffs.explain.ranks import find_rank_changes
from stepscope.diffs.explain.slow_steps import find_tail
from stepscope.diffs.explain.wording import TWO_PROGRAMS, describe_two_programs
from stepscope.diffs.families import judge_families
from stepscope.diffs.figures import note_other_peaks
from stepscope.diffs.findings import compare_findings
from stepscope.diffs.flame import build_flame
from stepscope.diffs.verdict import write_verdict
from stepscope.errors import StepscopeError
from stepscope.registers.policy.diffs import DIFF_ROWS


def compare(a: Side, b: Side, limit: int = DIFF_ROWS) -> Diff:
    """B against A; lists of rows have at most `limit`, 0 for all."""
    _refuse_dumps(a, b)
    case = Case(a, b)
    rows = judge_families(case)
    evidence = _gather_evidence(case, rows)
    lines = explain(evidence)
    diff = Diff(
        a=case.runs[0],
        b=case.runs[1],
        verdict="",
        significant=_is_any_significant(case.step.row, rows, lines),
        step=case.step.row,
        lines=lines,
        explained_share=_measure_explained(case.step.row, lines),
        not_comparable=[*_note_two_programs(case), *list_caveats(*case.runs, a, b)],
        one_recording=case.ground.is_exact,
        speed=case.ground.speeds.changes,
        batch=case.batch,
        tail=evidence.tail,
        ops_measure=case.measure,
        steps={name: side.samples.cells["ns"].to_list() for name, side in (("a", a), ("b", b))},
        flame=build_flame(a.samples, b.samples, case.measure),
    )
    _fill_rows(diff, rows, limit)
    diff.gained, diff.lost, diff.kept = compare_findings(a.report, b.report, diff.significant)
    lone = (
        "" if diff.step.significant else describe_lone_kernel(diff.a, diff.b, a.samples.clip, b.samples.clip)
    )
    two = TWO_PROGRAMS if case.are_two_programs else ""
    diff.verdict = " ".join(filter(None, (two, lone, write_verdict(diff))))
    return diff


def _refuse_dumps(*sides: Side) -> None:
    for side in sides:
        if side.report.hang.kind is not None:
            raise StepscopeError(
                f"{side.report.profile.path} holds flight-recorder dumps, which have no steps to compare.",
                fix="`stepscope report` explains each hang by itself.",
            )


def _note_two_programs(case: Case) -> list[str]:
    return (
        [describe_two_programs(case.common_calls)]
        if case.are_two_programs and case.common_calls is not None
        else []
    )


def _gather_evidence(case: Case, rows: JudgedRows) -> Evidence:
    step = case.step.row
    return Evidence(
        rows=rows,
        step=step,
        names=rows.names if case.compares_names else [],
        batch=case.batch,
        tail=find_tail(case.a.samples, case.b.samples) if case.compares_parts else None,
        ranks=find_rank_changes(case.ground, step, rows.parts) if case.compares_parts else [],
        is_exact=case.ground.is_exact,
    )


def _fill_rows(diff: Diff, rows: JudgedRows, limit: int) -> None:
    diff.figures, diff.parts = rows.figures, rows.parts
    diff.precision, diff.memory = rows.precision, rows.memory
    diff.names, diff.ops = _cap(rows.names, limit), _cap(rows.ops, limit)
    diff.kernels, diff.collectives = _cap(rows.kernels, limit), _cap(rows.collectives, limit)
    note_other_peaks(diff.figures, find_precision_change(rows.precision))


def _cap(rows: Sequence[Row], limit: int) -> Rows:
    return Rows(
        total=len(rows),
        significant=sum(row.significant for row in rows),
        rows=list(rows[:limit] if limit else rows),
    )


def _is_any_significant(step: Row, rows: JudgedRows, lines: Sequence[Line]) -> bool:
    families = rows.parts, rows.names, rows.ops, rows.kernels, rows.collectives, rows.memory, rows.precision
    return step.significant or bool(lines) or any(row.significant for family in families for row in family)


def _measure_explained(step: Row, lines: Sequence[Line]) -> float | None:
    """The share of the step's change that the lines explain in its own direction, at most 1; None where nothing can be said."""
    shares = [line.share for line in lines if line.share is not None and line.share > 0]
    return round(min(1.0, sum(shares)), 4) if shares and step.difference else None
