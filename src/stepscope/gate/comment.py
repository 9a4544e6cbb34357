"""The verdict as a comment on a pull request: what changed by more than noise first, then what differs within noise."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.diffs.comparable import do_both_have_steps
from stepscope.diffs.data.model import Diff, Row
from stepscope.diffs.explain.wording import format_share_change
from stepscope.diffs.render.cells import clip, describe_subject, format_cells, format_line
from stepscope.diffs.render.markdown import as_markdown as diff_as_markdown
from stepscope.gate.check import Gate
from stepscope.gate.text import as_markdown as gate_as_markdown
from stepscope.registers.policy.diffs import (
    COMMENT_BYTES,
    COMMENT_LINES,
    COMMENT_ROWS,
    DIFF_LONGEST_NAME,
    LEAST_DIFFERENCE,
)
from stepscope.reports.render.markdown import code, text

PASS, FAIL, UNKNOWN, FIRST, ERROR = "pass", "fail", "unknown", "first", "error"
_TITLES = {
    PASS: "✅ stepscope: passed",
    FAIL: "❌ stepscope: failed",
    UNKNOWN: "❔ stepscope: unknown",
    FIRST: "🆕 stepscope: first run, no baseline yet",
    ERROR: "⚠️ stepscope: error",
}


def marker(key: str) -> str:
    """The invisible first line by which the comment of an earlier run is found and updated."""
    letters = "".join(letter for letter in key if letter.isalnum() or letter in "-_.")
    return f"<!-- stepscope:{letters or 'default'} -->"


def write_comment(
    key: str, outcome: str, *, note: str = "", gate: Gate | None = None, diff: Diff | None = None
) -> str:
    """All of it, with as many rows of the tables as a comment can hold."""
    for rows in (COMMENT_ROWS, COMMENT_ROWS // 4, 0):
        tables = diff if rows else None
        written = "\n".join(_render(key, outcome, note, gate, diff, tables, rows)) + "\n"
        if len(written.encode()) <= COMMENT_BYTES:
            return written
    return "\n".join(_render(key, outcome, note, None, None, None, 0)) + "\n"


def _render(
    key: str,
    outcome: str,
    note: str,
    gate: Gate | None,
    diff: Diff | None,
    tables: Diff | None,
    rows: int,
) -> Iterator[str]:
    yield marker(key)
    yield f"### {_TITLES[outcome]}"
    if note:
        yield f"\n{note}"
    if diff is not None:
        yield f"\n{text(diff.verdict)}\n"
        yield from _render_changes(diff)
    if gate is not None:
        yield f"\n{gate_as_markdown(gate).rstrip()}"
    if tables is not None:
        yield "\n<details><summary>The whole comparison: A is the baseline, B is this run</summary>\n"
        yield diff_as_markdown(tables, limit=rows).rstrip()
        yield "\n</details>"


def _render_changes(diff: Diff) -> Iterator[str]:
    """Change and noise, apart: a row of the second list gives no reason to act."""
    changed = [*_list_step(diff), *_list_lines(diff)]
    yield f"**Changed by more than noise:**{'' if changed else ' nothing.'}"
    yield from changed
    within = list(_list_within_noise(diff))
    if within:
        yield "\n**Differs within noise**, which repeating the run would show as well:"
        yield from within


def _list_step(diff: Diff) -> Iterator[str]:
    if diff.step.significant and do_both_have_steps(diff.a, diff.b):
        yield f"- {_describe(diff.step, 'the step')}"


def _list_lines(diff: Diff) -> Iterator[str]:
    for line in diff.lines[:COMMENT_LINES]:
        figure, of_change = format_line(line)
        more = f", {of_change}" if of_change else ""
        yield f"- {text(clip(line.title, DIFF_LONGEST_NAME))}: {figure}{more}"
    left = len(diff.lines) - COMMENT_LINES
    if left > 0:
        yield f"- and {left} more, below"


def _list_within_noise(diff: Diff) -> Iterator[str]:
    """The step, and the parts that differ most although not significantly."""
    if not do_both_have_steps(diff.a, diff.b):
        return
    if not diff.step.significant and diff.step.difference:
        yield f"- {_describe(diff.step, 'the step')}"
    least = LEAST_DIFFERENCE * (diff.step.a or 0.0)
    rows = [row for row in diff.parts if not row.significant and abs(row.difference) > least]
    for row in sorted(rows, key=lambda row: -abs(row.difference))[:COMMENT_LINES]:
        yield f"- {_describe(row, describe_subject(row, 'parts'))}"


def _describe(row: Row, name: str) -> str:
    a, b, difference, _, noise = format_cells(row)
    relative = f", {format_share_change(row.relative)}" if row.relative is not None else ""
    margin = f", noise ± {noise}" if noise else ""
    return f"{code(name)} {a} → {b} ({difference}{relative}{margin})"
