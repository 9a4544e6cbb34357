"""Trace JSON read the plain way, with the standard library and nothing of ours: to be compared with."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

NO_ROWS = ("M", "s", "t", "f")


@dataclass(frozen=True)
class Event:
    """An event that is a row: times in ns, rounded half up at both ends."""

    category: str | None
    name: str
    start_ns: int
    dur_ns: int
    args: dict[str, Any]

    @property
    def row(self) -> tuple[str | None, str, int, int]:
        """What tells it from others."""
        return self.category, self.name, self.start_ns, self.dur_ns


@dataclass(frozen=True)
class Document:
    """The events that are rows, how many there are of the others by phase, and everything beside the events."""

    events: list[Event]
    others: Counter[str]
    header: dict[str, Any]


def decode(path: Path) -> Document:
    """The file, number for number as it is written."""
    found = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    listed = found if isinstance(found, list) else found.pop("traceEvents")
    events = [one for one in listed if one]  # XProf ends its list with an empty object
    return Document(
        [_event(one) for one in events if one["ph"] not in NO_ROWS],
        Counter(one["ph"] for one in events if one["ph"] in NO_ROWS),
        found if isinstance(found, dict) else {},
    )


def _event(one: dict[str, Any]) -> Event:
    start, dur = Decimal(one["ts"]), Decimal(one.get("dur", 0))
    first = _ns(start)
    return Event(one.get("cat"), one["name"], first, _ns(start + dur) - first, one.get("args") or {})


def _ns(us: Decimal) -> int:
    return int((us * 1000 + Decimal("0.5")).to_integral_value(rounding=ROUND_FLOOR))
