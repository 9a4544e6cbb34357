"""A gate's verdict as a table: in a terminal, as Markdown, as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.text import Text

from stepscope.diffs.render.cells import format_amount, format_change
from stepscope.gate.check import Check, Gate
from stepscope.gate.wording import NOISY, OK, TITLES, format_limit
from stepscope.reports.render.markdown import code, text
from stepscope.reports.render.terminal_sections import wrapped
from stepscope.reports.render.text_grid import lines
from stepscope.safe import safe

HEAD = ("limit", "at most", "measured", "± noise", "verdict", "")
_STYLES = {OK: "green", NOISY: "yellow"}
_MARKS = {OK: "✅", NOISY: "⚠️"}


def gate_lines(gate: Gate, width: int) -> Iterator[Text]:
    """The table, then the verdict."""
    rows = [[Text(title, "dim") for title in HEAD], *map(_render_row, gate.checks)]
    yield from lines(
        rows, [False, True, True, True, False, False], [False, False, False, False, False, True], width
    )
    yield Text()
    for remark in gate.remarks:
        yield from (Text(line.plain, "yellow") for line in wrapped(safe(remark), width, "  ", "! "))
    yield Text(gate.summary, "bold green" if gate.passed else "bold red")


def _render_row(check: Check) -> list[Text]:
    name, most, value, noise, verdict, message = format_cells(check)
    style = _STYLES.get(check.verdict, "bold red")
    return [Text(name), Text(most), Text(value), Text(noise), Text(verdict, style), Text(safe(message))]


def as_text(gate: Gate, width: int = 110) -> str:
    """Without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in gate_lines(gate, width))


def as_markdown(gate: Gate) -> str:
    """For a comment on a pull request, or the summary of a job."""
    rows = [
        f"| {code(name)} | {most} | {value} | {noise} | {_MARKS.get(check.verdict, '❌')} {verdict} | {text(message)} |"
        for check in gate.checks
        for name, most, value, noise, verdict, message in [format_cells(check)]
    ]
    head = ["| " + " | ".join(HEAD) + " |", "|---|---:|---:|---:|---|---|"]
    remarks = [line for remark in gate.remarks for line in ("", text(remark))]
    return "\n".join([f"**{text(gate.summary)}**", "", *head, *rows, *remarks]) + "\n"


def as_json(gate: Gate) -> str:
    """With a schema of its own, `stepscope.gate/1`."""
    return msgspec.json.format(msgspec.json.encode(gate), indent=2).decode() + "\n"


def _format_as_written(check: Check, sign: str) -> tuple[str, str]:
    """Both figures in the unit that the limit was written in."""
    if check.value is None:
        return sign + check.said, "–"
    value = format_limit(abs(check.value), check.unit, check.said)
    return sign + check.said, f"{'−' if check.value < 0 else sign}{value}"


def format_cells(check: Check) -> tuple[str, str, str, str, str, str]:
    """The cells below HEAD. Growth has its sign."""
    is_growth = check.name.startswith("baseline.") and check.unit != "count"
    write = format_change if is_growth else format_amount
    most = write(check.limit, check.unit) if check.limit is not None else ""
    value = write(check.value, check.unit) if check.value is not None else "–"
    if check.unit == "bytes" and check.said:
        most, value = _format_as_written(check, "+" if is_growth else "")
    noise = format_amount(check.noise, check.unit) if check.noise is not None else ""
    return check.name, most, value, noise, TITLES[check.verdict], check.message
