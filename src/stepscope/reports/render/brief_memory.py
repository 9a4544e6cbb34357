"""What holds the memory of a snapshot, on a few lines: the fullest device by kind, with the line that holds most of each."""

from __future__ import annotations

from rich.text import Text

from stepscope import units
from stepscope.analysis.snapshot.words import at, call
from stepscope.names import cut_middle
from stepscope.reports.model.memory_snapshot import MemorySnapshot
from stepscope.reports.model.report import Report
from stepscope.reports.render.text_grid import bar, lines
from stepscope.reports.wording.values import share
from stepscope.safe import safe

_BAR = 14
_ROOM = 40


def memory_lines(report: Report, width: int, most: int) -> list[Text]:
    """The table under its heading, and the changes that make room."""
    device = max(report.memory.snapshot, key=lambda each: (each.failed, each.allocated_bytes))
    total = max(1, device.reserved_bytes, device.allocated_bytes)
    rows = [
        [
            Text(call(row.kind)),
            Text(share(row.bytes / total)),
            Text(units.size(row.bytes)),
            Text(bar(row.bytes / total, _BAR), "cyan"),
            Text(_main_line(device, row.kind), "dim"),
        ]
        for row in device.kinds[:most]
    ]
    drawn = lines(rows, [False, True, True, False, False], [False, False, False, False, True], width)
    return [*_heading(device), *drawn, *_changes(device, width)]


def _heading(device: MemorySnapshot) -> list[Text]:
    when = "when the request failed" if device.failed else "when the snapshot was taken"
    detail = f"device {device.device}, {units.size(device.reserved_bytes)} reserved, {when}"
    return [Text(), Text.assemble(("what holds the memory", "bold"), (f"  {detail}", "dim"))]


def _main_line(device: MemorySnapshot, kind: str) -> str:
    held: dict[str, int] = {}
    for row in device.lines:
        if row.kind == kind and row.where is not None:
            held[at(row.where)] = held.get(at(row.where), 0) + row.bytes
    first = max(held, key=lambda place: held[place], default="")
    return cut_middle(safe(first), _ROOM)


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
