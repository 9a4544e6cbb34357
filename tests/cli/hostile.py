"""A profile whose names try to take over the terminal."""

from __future__ import annotations

import json
from pathlib import Path

NAMES = [
    "\x1b[2J\x1b[31mred",
    "[bold red]markup[/] :smile:",
    "bell\x07",
    "c1\x9b31m",
    "\u202eright to left",
    "two\nlines\ttab",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
]


def write_hostile(folder: Path) -> Path:
    """A Kineto file with such names wherever a name can stand."""
    events = [
        {"ph": "X", "cat": f"cat {name}", "name": name, "pid": 1, "tid": i, "ts": 10 * i, "dur": 5}
        for i, name in enumerate(NAMES)
    ]
    header = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": NAMES[0]}], "host_name": NAMES[1]}
    path = folder / "hostile \x1b[31m.pt.trace.json"
    path.write_text(json.dumps({**header, "traceEvents": events}, ensure_ascii=False), "utf-8")
    return path
