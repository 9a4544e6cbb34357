"""The way without compiled code: msgspec splits the JSON, Python fills the columns. Slow, and the same tables.

Documents that are not valid JSON, or hold members that are not known here, are left to the scanner itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.chrome.scan.columns import Identity, JsonEvents, layout_types
from stepscope.formats.chrome.scan.driver import member
from stepscope.formats.chrome.scan.problems import note_counted
from stepscope.formats.chrome.scan.vocabulary import VOCABULARY
from stepscope.native.json.events import BILLIONTHS, INTEGER, MISSING, TEXT, TEXT_ID, TRIPLE
from stepscope.trace.json_text import repaired_json
from stepscope.trace.problems import Problems
from stepscope.trace.schema import Text

_LIMIT_NS = 4 * 10**18
_DIGITS = 40
_NOTHING = msgspec.Raw(b"")


class _Event(msgspec.Struct, forbid_unknown_fields=True):
    ph: str = ""
    name: Any = None
    cat: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    pid: Any = None
    tid: Any = None
    id: Any = None
    bp: Any = None
    s: Any = None
    args: msgspec.Raw = _NOTHING


_Arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])


def scan_slow(content: bytes) -> JsonEvents | None:
    """All events of a valid document; None where it needs the scanner's patience."""
    if content.count(b'"traceEvents"') > 1:
        return None  # perhaps two lists of events, of which a decoder would keep the last
    problems = Problems()
    try:
        if content.lstrip()[:1] == b"[":
            header, events = dict[str, Any](), msgspec.json.decode(content, type=list[_Event])
        else:
            members = _Arguments.decode(content)
            events = msgspec.json.decode(members.pop("traceEvents", msgspec.Raw(b"[]")), type=list[_Event])
            header = {key: member(key, bytes(value), problems) for key, value in members.items()}
        return _Columns(events).result(header, problems)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _NeedsScanner):
        return None


class _NeedsScanner(Exception):
    """Something that only the scanner reads right."""


class _Columns:
    """Lists that become the tables."""

    def __init__(self, events: list[_Event]) -> None:
        self.rows: list[tuple[int, Any, Any, int, int, int]] = []
        self.tracks: dict[tuple[Identity, Identity], int] = {}
        self.layouts: dict[str, list[list[Any]]] = {name: [] for name in VOCABULARY.columns}
        self.flows: list[tuple[Any, ...]] = []
        self.asyncs: list[tuple[int, int]] = []
        self.metadata: list[tuple[str, Identity, Identity, dict[str, Any]]] = []
        self.rest: list[tuple[int, bytes]] = []
        self.ids: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        for event in events:
            self._take(event)

    def _take(self, event: _Event) -> None:
        if event == _EMPTY:
            return
        phase = _phase(event.ph)
        if phase == ord("M"):
            args = repaired_json(bytes(event.args)) if event.args else None
            found = args if isinstance(args, dict) else {}
            self.metadata.append((_text(event.name) or "", _identity(event.pid), _identity(event.tid), found))
            return
        if not phase:
            self.counts["without_phase"] += 1
            return
        length = _decimal(bytes(event.dur))
        time = _times(_decimal(bytes(event.ts)), length or Decimal(0))
        if isinstance(time, str):
            self.counts[time] += 1
            return
        track = self.tracks.setdefault((_identity(event.pid), _identity(event.tid)), len(self.tracks))
        identity = self._id(event.id)
        if phase in b"stf":
            names = (_text(event.cat), _text(event.name))
            self.flows.append((time[0], track, identity, *names, phase, event.bp is not None))
            return
        if phase == ord("X") and length is None:
            self.counts["without_duration"] += 1
        self._take_arguments(event)
        if identity is not None:
            self.asyncs.append((len(self.rows), identity))
        self.rows.append((phase, _text(event.name), _text(event.cat), track, *time))

    def _id(self, value: Any) -> int | None:
        if isinstance(value, str):
            return TEXT_ID + self.ids.setdefault(value, len(self.ids))
        return None if value is None else _whole(value)

    def _take_arguments(self, event: _Event) -> None:
        row = len(self.rows)
        text = bytes(event.args)
        known, extra = _known(text)
        used = 0
        for layout in self._layouts_of(event, known):
            slots = VOCABULARY.layouts[layout]
            self.layouts[_NAMES[layout]].append([row, *(known.get(slot) for slot in slots)])
            used += sum(slot in known for slot in slots)
        if extra or used < len(known):
            self.rest.append((row, text))

    def _layouts_of(self, event: _Event, known: dict[int, Any]) -> list[int]:
        layout = _LAYOUTS.get(event.cat, 0) if isinstance(event.cat, str) else 0
        if not layout and VOCABULARY.fallback[0] in known:
            layout = VOCABULARY.fallback[1]
        found = [layout] if layout else []
        return [*found, VOCABULARY.trigger[1]] if VOCABULARY.trigger[0] in known else found

    def result(self, header: dict[str, Any], problems: Problems) -> JsonEvents:
        """The lists as tables."""
        note_counted(problems, self.counts)
        columns: dict[str, Any] = {
            "ph": pl.UInt8,
            "name": Text,
            "category": Text,
            "track": pl.UInt32,
            "start": pl.Int64,
            "dur": pl.Int64,
        }
        flows: dict[str, Any] = {
            "start": pl.Int64,
            "track": pl.UInt32,
            "id": pl.Int64,
            "category": Text,
            "name": Text,
            "ph": pl.UInt8,
            "bind_enclosing": pl.Boolean,
        }
        return JsonEvents(
            events=pl.DataFrame(self.rows, schema=columns, orient="row"),
            tracks=list(self.tracks),
            layouts={
                name: pl.DataFrame(rows, schema=layout_types(name), orient="row")
                for name, rows in self.layouts.items()
            },
            flows=pl.DataFrame(self.flows, schema=flows, orient="row"),
            asyncs=pl.DataFrame(self.asyncs, schema={"event": pl.UInt32, "id": pl.Int64}, orient="row"),
            metadata=self.metadata,
            rest=pl.DataFrame(self.rest, schema={"event": pl.UInt32, "json": pl.Binary}, orient="row"),
            header=header,
            problems=problems,
        )


_EMPTY = _Event()
_NAMES = list(VOCABULARY.columns)
_KEYS = {key.decode(): (slot, how) for key, slot, how in VOCABULARY.keys}
_LAYOUTS = {category.decode(): layout for category, layout in VOCABULARY.categories}


def _known(text: bytes) -> tuple[dict[int, Any], bool]:
    """The arguments that have a slot, and whether there are others."""
    if text[:1] != b"{":
        return {}, text not in (b"", b"null")
    known: dict[int, Any] = {}
    extra = False
    for key, raw in _Arguments.decode(text).items():
        found = _KEYS.get(key)
        values = _value(bytes(raw), found[1]) if found else None
        if found is None or values is None:
            extra = True
        else:
            known.update(zip(range(found[0], found[0] + len(values)), values, strict=True))
    return known, extra


def _phase(text: str) -> int:
    if not text:
        return 0
    if not text[0].isascii():
        raise _NeedsScanner
    return ord(text[0])


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise _NeedsScanner


def _identity(value: Any) -> Identity:
    return value if value is None or isinstance(value, str) else _whole(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise _NeedsScanner
    return _signed(int(value))


def _signed(value: int) -> int:
    """Unsigned 64-bit numbers wrap, as the scanner's do."""
    if not -(2**63) <= value < 2**64:
        raise _NeedsScanner
    return value - 2**64 if value >= 2**63 else value


def _times(begin: Decimal | None, length: Decimal) -> tuple[int, int] | str:
    """Start and duration in ns on one grid, or what is wrong with them."""
    if begin is None:
        return "untimed"
    if abs(begin) * 1000 > _LIMIT_NS or abs(length) * 1000 > _LIMIT_NS:
        return "out_of_range"
    first = _rounded(begin * 1000)
    return first, _rounded((begin + length) * 1000) - first


def _decimal(text: bytes) -> Decimal | None:
    """The number, or None; one of more digits than anything has is cut to a size that can be computed with."""
    try:
        found = Decimal(text.strip(b'"').decode())
    except (InvalidOperation, UnicodeDecodeError):
        return None
    if not found.is_finite():
        return None
    if found and found.adjusted() > _DIGITS:
        return Decimal(10).scaleb(_DIGITS).copy_sign(found)
    return found if found.adjusted() > -_DIGITS else Decimal(0)


def _rounded(value: Decimal) -> int:
    """Half up, as the scanner rounds."""
    return int((value + Decimal("0.5")).to_integral_value(rounding="ROUND_FLOOR"))


def _integer(text: bytes) -> int | None:
    if text in (b"true", b"false"):
        return int(text == b"true")
    found = _decimal(text)
    return None if found is None or found != found.to_integral_value() else _signed(int(found))


def _value(text: bytes, how: int) -> list[Any] | None:
    """What goes into the slots of a known argument, or None if it does not fit."""
    return _READERS[how](text)


def _one_integer(text: bytes) -> list[Any] | None:
    found = _integer(text)
    return None if found is None or found == MISSING else [found]


def _one_billionths(text: bytes) -> list[Any] | None:
    found = _decimal(text)
    if found is None or abs(found) * 10**9 > _LIMIT_NS:
        return None
    return [_rounded(found * 10**9) / 1e9]


def _one_text(text: bytes) -> list[Any] | None:
    return [msgspec.json.decode(text, type=str) if text[:1] == b'"' else text.decode()]


def _three_integers(text: bytes) -> list[Any] | None:
    found = repaired_json(text)
    if not isinstance(found, list) or len(found) != 3 or not all(isinstance(part, int) for part in found):
        return None
    return [_signed(int(part)) for part in found]


_READERS: dict[int, Callable[[bytes], list[Any] | None]] = {
    INTEGER: _one_integer,
    BILLIONTHS: _one_billionths,
    TEXT: _one_text,
    TRIPLE: _three_integers,
}
