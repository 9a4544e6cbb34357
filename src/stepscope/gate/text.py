"""A gate's verdict as a table: in a terminal, as Markdown, as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.text import Text

from stepscope.diffs.render.cells import amount, change
from stepscope.gate.check import NOISY, OK, Check, Gate, written
from stepscope.reports.render.markdown import code, text
from stepscope.reports.render.terminal_sections import wrapped
from stepscope.reports.render.text_grid import lines
from stepscope.safe import safe

HEAD = ("limit", "at most", "measured", "± noise", "verdict", "")
_STYLES = {OK: "green", NOISY: "yellow"}
_MARKS = {OK: "✅", NOISY: "⚠️"}


def gate_lines(found: Gate, width: int) -> Iterator[Text]:
    """The table, then the verdict."""
    rows = [[Text(title, "dim") for title in HEAD]]
    for check in found.checks:
        name, most, value, noise, verdict, message = cells(check)
        style = _STYLES.get(check.verdict, "bold red")
        figures = [Text(most), Text(value), Text(noise)]
        rows.append([Text(name), *figures, Text(verdict, style), Text(safe(message))])
    yield from lines(
        rows, [False, True, True, True, False, False], [False, False, False, False, False, True], width
    )
    yield Text()
    for remark in found.remarks:
        yield from (Text(line.plain, "yellow") for line in wrapped(safe(remark), width, "  ", "! "))
    yield Text(found.summary, "bold green" if found.passed else "bold red")


def as_text(found: Gate, width: int = 110) -> str:
    """Without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in gate_lines(found, width))


def as_markdown(found: Gate) -> str:
    """For a comment on a pull request, or the summary of a job."""
    rows = [
        f"| {code(name)} | {most} | {value} | {noise} | {_MARKS.get(verdict, '❌')} {verdict} | {text(message)} |"
        for name, most, value, noise, verdict, message in map(cells, found.checks)
    ]
    head = ["| " + " | ".join(HEAD) + " |", "|---|---:|---:|---:|---|---|"]
    remarks = [line for remark in found.remarks for line in ("", text(remark))]
    return "\n".join([f"**{text(found.summary)}**", "", *head, *rows, *remarks]) + "\n"


def as_json(found: Gate) -> str:
    """With a schema of its own, `stepscope.gate/1`."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def _as_said(check: Check, sign: str) -> tuple[str, str]:
    """Both figures in the unit of the limit."""
    if check.value is None:
        return sign + check.said, "–"
    value = written(abs(check.value), check.unit, check.said)
    return sign + check.said, f"{'−' if check.value < 0 else sign}{value}"


def cells(check: Check) -> tuple[str, str, str, str, str, str]:
    """The cells of HEAD. Differences to a baseline carry their sign."""
    grows = check.name.startswith("baseline.") and check.unit != "count"
    say = change if grows else amount
    most = say(check.limit, check.unit) if check.limit is not None else ""
    value = say(check.value, check.unit) if check.value is not None else "–"
    if check.unit == "bytes" and check.said:
        most, value = _as_said(check, "+" if grows else "")
    noise = amount(check.noise, check.unit) if check.noise is not None else ""
    return check.name, most, value, noise, check.verdict, check.message
