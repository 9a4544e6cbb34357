"""Figures over time: how busy a device was, and how much memory was taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepscope import units
from stepscope.reports.figures.axes import (
    BOTTOM,
    TOP,
    Frame,
    binary_ticks,
    duration_words,
    grid,
    ticks,
    under,
)
from stepscope.reports.figures.figure import Figure
from stepscope.reports.figures.markup import Markup, join, tag
from stepscope.reports.model.report import MemoryDevice, Report
from stepscope.reports.wording.memory import where
from stepscope.reports.wording.values import share

PANELS = 8
_HEIGHT = 110


def device(report: Report) -> Figure | None:
    """The share of each moment in which a device was busy."""
    rows = report.device.timeline
    keys = list(dict.fromkeys((row.get("rank"), row.get("device")) for row in rows))
    if not keys:
        return None
    drawn = keys[:PANELS]
    several = len(report.profile.ranks) > 1
    body = []
    for number, (rank, name) in enumerate(drawn):
        mine = [row for row in rows if (row.get("rank"), row.get("device")) == (rank, name)]
        label = f"device {name}" + (f" of rank {rank}" if several else "")
        body.append(
            _busy_panel(mine, number * (_HEIGHT + TOP + BOTTOM) + TOP, label if len(keys) > 1 else "")
        )
    note = f"the first {len(drawn)} of {len(keys)} devices" if len(drawn) < len(keys) else ""
    return Figure(
        "device", "Device busy over time", len(drawn) * (_HEIGHT + TOP + BOTTOM), join(body), note=note
    )


def _busy_panel(rows: Sequence[dict[str, Any]], y: float, label: str) -> Markup:
    begin = rows[0]["start_ns"]
    frame = Frame(y, _HEIGHT, 0, rows[-1]["end_ns"] - begin, 1.0)
    words = duration_words(frame.high)
    points = []
    for row in rows:
        level = frame.up(row["busy"])
        points += [f"{frame.across(row['start_ns'] - begin):.1f},{level:.1f}", f"{frame.across(row['end_ns'] - begin):.1f},{level:.1f}"]  # fmt: skip
    floor = frame.up(0)
    area = f"{frame.across(0):.1f},{floor:.1f} {' '.join(points)} {frame.across(frame.high):.1f},{floor:.1f}"
    covers = [
        tag(
            "rect",
            tag("title", f"{units.duration(row['start_ns'] - begin)}: {share(row['busy'])} busy"),
            x=frame.across(row["start_ns"] - begin),
            y=y,
            width=max(0.5, frame.across(row["end_ns"]) - frame.across(row["start_ns"])),
            height=float(_HEIGHT),
            class_="cover",
        )
        for row in rows
    ]
    return join(
        [
            grid(frame, [0.0, 0.5, 1.0], lambda mark: f"{100 * mark:.0f} %"),
            tag("polygon", points=area, class_="p-compute area"),
            under(frame, ticks(frame.high, 8), words),
            covers,
            tag("text", label, x=frame.across(0) + 4, y=y + 12, class_="panel") if label else None,
        ]
    )


def memory(report: Report) -> Figure | None:
    """Allocated and reserved memory, with the peak."""
    devices = [found for found in report.memory.devices if len(found.timeline) > 1]
    if not devices:
        return None
    drawn = devices[:PANELS]
    body = [
        _memory_panel(report, found, number * (_HEIGHT + TOP + BOTTOM) + TOP, len(devices) > 1)
        for number, found in enumerate(drawn)
    ]
    note = f"the first {len(drawn)} of {len(devices)} devices" if len(drawn) < len(devices) else ""
    legend = (("m-allocated", "allocated"), ("m-reserved", "reserved"))
    return Figure(
        "memory", "Memory over time", len(drawn) * (_HEIGHT + TOP + BOTTOM), join(body), legend, note
    )


def _memory_panel(report: Report, found: MemoryDevice, y: float, labelled: bool) -> Markup:
    rows = found.timeline
    begin, end = rows[0]["time_ns"], rows[-1]["time_ns"]
    top = max(max(row["allocated"] or 0, row["reserved"] or 0) for row in rows) * 1.06 or 1.0
    frame = Frame(y, _HEIGHT, 0, end - begin, top)
    pieces: list[Markup | None] = [
        grid(frame, binary_ticks(top, 4), units.size),
        _stairs(rows, "reserved", frame, begin, "m-reserved line"),
        _stairs(rows, "allocated", frame, begin, "m-allocated line"),
        under(frame, ticks(frame.high, 8), duration_words(frame.high)),
        _peak(found, frame, begin),
        tag("text", where(report, found), x=frame.across(0) + 4, y=y + 12, class_="panel")
        if labelled
        else None,
    ]
    return join(pieces)


def _stairs(rows: Sequence[dict[str, Any]], key: str, frame: Frame, begin: int, style: str) -> Markup | None:
    """Memory stays as it is until the next change."""
    known = [(row["time_ns"] - begin, row[key]) for row in rows if row[key] is not None]
    if not known:
        return None
    first = f"M{frame.across(known[0][0]):.1f} {frame.up(known[0][1]):.1f}"
    rest = "".join(f"H{frame.across(time):.1f}V{frame.up(value):.1f}" for time, value in known[1:])
    return tag("path", d=first + rest, class_=style)


def _peak(found: MemoryDevice, frame: Frame, begin: int) -> Markup | None:
    if found.peak_bytes is None or found.peak_at_ns is None:
        return None
    at = min(max(found.peak_at_ns - begin, 0), frame.high)
    tip = tag("title", f"peak {units.size(found.peak_bytes)} at {units.duration(at)}")
    return tag("circle", tip, cx=frame.across(at), cy=frame.up(found.peak_bytes), r=4.0, class_="peak")
