"""Cuts a Kineto file to some intervals. It is read line by line: such files do not fit into memory twice.

Kineto writes each event between a line with its opening brace and a line with its closing one. Spans and arrows outside all
intervals are left out; allocations stay, since totals would not add up without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

_BASE = re.compile(r'"baseTimeNanoseconds":\s*(\d+)')
_PHASE = re.compile(r'"ph":\s*"(.)"')
_TIME = re.compile(r'"ts":\s*(-?[\d.]+)')
_DURATION = re.compile(r'"dur":\s*([\d.]+)')
_TIMED = ("X", "s", "f", "t")

Stretch = tuple[int, int]


def cut(path: Path, stretches: list[Stretch]) -> None:
    """Leave only what touches one of the intervals, given in nanoseconds since 1970."""
    done = path.with_name(f"cut-{path.name}")
    with (
        path.open(encoding="utf-8", errors="surrogateescape") as lines,
        done.open("w", encoding="utf-8", errors="surrogateescape") as out,
    ):
        _copy(lines, out, stretches)
    done.replace(path)


def _copy(lines: Iterable[str], out: IO[str], stretches: list[Stretch]) -> None:
    base, separator = 0, ""
    for is_event, text in _pieces(lines):
        if not is_event:
            found = _BASE.search(text)
            base = int(found[1]) if found else base
            out.write(text)
        elif _is_wanted(text, base, stretches):
            out.write(separator + text)
            separator = ",\n"


def _pieces(lines: Iterable[str]) -> Iterator[tuple[bool, str]]:
    """Lines outside of events as they are, and events whole, without the comma behind them."""
    event: list[str] = []
    for line in lines:
        if event:
            event.append(line)
            if line.rstrip() in ("  }", "  },"):
                yield True, "".join(event).rstrip().removesuffix(",")
                event = []
        elif line.rstrip() == "  {":
            event = [line]
        else:
            yield False, line if line.lstrip()[:1] != "]" else "\n" + line
    if event:
        yield False, "".join(event)


def _is_wanted(event: str, base: int, stretches: list[Stretch]) -> bool:
    phase, time = _PHASE.search(event), _TIME.search(event)
    if phase is None or time is None or phase[1] not in _TIMED or '"pid": "Spans"' in event:
        return True
    duration = _DURATION.search(event)
    start = base + round(float(time[1]) * 1000)
    end = start + (round(float(duration[1]) * 1000) if duration else 0)
    return any(start < high and end >= low for low, high in stretches)
