"""What held the peak of a snapshot and what it holds, on a few lines: the fullest device by kind, with the line that holds most of each."""

from __future__ import annotations

from rich.text import Text

from stepscope import units
from stepscope.analysis.snapshot.words import at, call
from stepscope.names import cut_middle
from stepscope.registers.policy.tables import ACCOUNT_ROWS_LEAST
from stepscope.reports.model.memory_snapshot import HeldRow, MemorySnapshot
from stepscope.reports.model.report import Report
from stepscope.reports.render.text_grid import bar, lines
from stepscope.reports.wording.memory import fullest
from stepscope.reports.wording.values import share
from stepscope.safe import safe

_BAR = 14
_ROOM = 40


def memory_lines(report: Report, width: int, most: int) -> list[Text]:
    """Who held the peak, what the snapshot holds, and the changes that make room: `most` rows in all, where that is possible."""
    device = fullest(report.memory.snapshot)
    total = max(1, device.reserved_bytes, device.allocated_bytes)
    held = [
        _row(call(row.kind), row.bytes, total, _main_line(device.lines, row.kind))
        for row in device.kinds[:most]
    ]
    below = [*_heading(device), *_table(held, width), *_changes(device, width)]
    return [*_peak(device, width, max(ACCOUNT_ROWS_LEAST, most - len(below))), *below]


def _peak(device: MemorySnapshot, width: int, most: int) -> list[Text]:
    """The peak by kind; by line, where nothing shows a kind. A request that failed is looked at when it did."""
    peak = device.peak
    if peak is None or device.failed:
        return []
    if any(row.kind != "unknown" for row in peak.kinds):
        rows = [
            _row(call(row.kind), row.bytes, peak.bytes, _main_line(peak.lines, row.kind))
            for row in peak.kinds[:most]
        ]
    else:
        rows = [
            _row("", row.bytes, peak.bytes, at(row.where) if row.where else "line unknown")
            for row in peak.lines[:most]
        ]
    detail = f"device {device.device}, {units.size(peak.bytes)}, {units.duration(peak.before_ns)} before the snapshot was taken"
    return [*_titled("what held the peak", detail), *_table(rows, width)]


def _heading(device: MemorySnapshot) -> list[Text]:
    when = "when the request failed" if device.failed else "when the snapshot was taken"
    return _titled(
        "what holds the memory",
        f"device {device.device}, {units.size(device.reserved_bytes)} reserved, {when}",
    )


def _titled(title: str, detail: str) -> list[Text]:
    return [Text(), Text.assemble((title, "bold"), (f"  {detail}", "dim"))]


def _row(name: str, held: int, total: int, line: str) -> list[Text]:
    part = held / max(1, total)
    return [
        Text(name),
        Text(share(part)),
        Text(units.size(held)),
        Text(bar(part, _BAR), "cyan"),
        Text(cut_middle(safe(line), _ROOM), "dim"),
    ]


def _table(rows: list[list[Text]], width: int) -> list[Text]:
    return list(lines(rows, [False, True, True, False, False], [False, False, False, False, True], width))


def _main_line(lines_: list[HeldRow], kind: str) -> str:
    held: dict[str, int] = {}
    for row in lines_:
        if row.kind == kind and row.where is not None:
            held[at(row.where)] = held.get(at(row.where), 0) + row.bytes
    return max(held, key=lambda place: held[place], default="")


def _changes(device: MemorySnapshot, width: int) -> list[Text]:
    """The first two that suffice."""
    fitting = [each for each in device.changes if each.fits][:2]
    if not fitting:
        return []
    found = [Text(), Text("what makes it fit", "bold")]
    for each in fitting:
        line = Text(f"  {units.size(each.bytes)}  {safe(each.text)}")
        line.truncate(width, overflow="ellipsis")
        found.append(line)
    return found
