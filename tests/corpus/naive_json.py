"""Trace JSON read the plain way, with the standard library and nothing of ours: to be compared with."""

from __future__ import annotations

import gc
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any, NamedTuple

NO_ROWS = ("M", "s", "t", "f")


class Event(NamedTuple):
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
    with _without_collections():
        found = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
        events = _listed(found)
        return Document(
            [_event(one) for one in events if one["ph"] not in NO_ROWS],
            Counter(one["ph"] for one in events if one["ph"] in NO_ROWS),
            found if isinstance(found, dict) else {},
        )


def categories(path: Path) -> Counter[str | None]:
    """How many events that are rows there are of each category."""
    with _without_collections():
        events = _listed(json.loads(gzip.decompress(path.read_bytes())))
        return Counter(one.get("cat") for one in events if one["ph"] not in NO_ROWS)


def _listed(found: Any) -> list[dict[str, Any]]:
    events = found if isinstance(found, list) else found.pop("traceEvents")
    return [one for one in events if one]  # XProf ends its list with an empty object


@contextmanager
def _without_collections() -> Iterator[None]:
    """Looking for cycles among millions of objects that have none takes longer than to read them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _event(one: dict[str, Any]) -> Event:
    start, dur = Decimal(one["ts"]), Decimal(one.get("dur", 0))
    first = _ns(start)
    return Event(one.get("cat"), one["name"], first, _ns(start + dur) - first, one.get("args") or {})


def _ns(us: Decimal) -> int:
    return int((us * 1000 + Decimal("0.5")).to_integral_value(rounding=ROUND_FLOOR))
