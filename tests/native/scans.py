"""The scanner alone, over documents of a few lines, with what it read in words instead of codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stepscope.native.json import events

# Arguments by the slots they fill: a layout each for the category `op`, for a collective and for memory.
KEYS = [
    (b"n", 0, events.INTEGER),
    (b"share", 1, events.BILLIONTHS),
    (b"dims", 2, events.TEXT),
    (b"grid", 3, events.TRIPLE),
    (b"collective", 6, events.TEXT),
    (b"Bytes", 7, events.INTEGER),
]
LAYOUTS = [[], [0, 1, 2, 3, 4, 5], [6, 0], [7]]
OP, COLLECTIVE, MEMORY = 1, 2, 3
NO_CODE = 0xFFFFFFFF

Row = tuple[Any, ...]


@dataclass
class Read:
    """All that a scan brought back; strings in place of codes, None in place of what is missing."""

    ended: int
    position: int
    counts: dict[str, int]
    texts: list[tuple[bytes, int]]
    tracks: list[Row]
    events: list[Row]  # ph, name, category, track, start, dur
    layouts: list[list[Row]]
    flows: list[Row]
    metas: list[Row]
    asyncs: list[Row]
    rest: list[tuple[int, bytes]]
    header: list[tuple[bytes, bytes]] = field(default_factory=list)

    def bad(self) -> dict[str, int]:
        """The counts that are not as they should be."""
        return {name: n for name, n in self.counts.items() if n > 0 and name not in ("events", "first_bad")}


def new_scanner(native: Any, expected_events: int = 0) -> Any:
    """A scanner that knows KEYS."""
    return native.Scanner(KEYS, 8, [(b"op", OP)], LAYOUTS, (6, COLLECTIVE), (7, MEMORY), expected_events)


def scan(native: Any, *windows: bytes) -> Read:
    """Read the windows one after the other; what one of them does not finish begins the next."""
    scanner = new_scanner(native)
    header: list[tuple[bytes, bytes]] = []
    left = b""
    ended = native.MORE
    for window in windows:
        if ended == native.MORE:
            left += window
            scanner.feed(left, 0)
            ended = run(native, scanner, left, header)
            left = left[scanner.position() :]
    return told(native, scanner, ended, header)


def run(native: Any, scanner: Any, buf: bytes, header: list[tuple[bytes, bytes]]) -> int:
    """Run to the end of the buffer or of the document, and keep the members of the header."""
    while True:
        ended: int = scanner.run()
        if ended == native.HEADER:
            header.append((buf[slice(*scanner.key_span())], buf[slice(*scanner.value_span())]))
        elif ended != native.PAUSED:
            return ended


def told(native: Any, scanner: Any, ended: int, header: list[tuple[bytes, bytes]]) -> Read:
    """What the scanner holds, in words."""
    texts = scanner.texts()
    words = [text.decode(errors="surrogateescape") for text, _ in texts]

    def word(code: int) -> str | None:
        return None if code == NO_CODE else words[code]

    def identity(value: int) -> int | str | None:
        code = value - native.TEXT_ID
        if value == native.MISSING:
            return None
        return words[code] if 0 <= code < len(words) else value

    columns = scanner.events()
    layouts = [_layout(native, scanner.layout(number), slots, words) for number, slots in enumerate(LAYOUTS)]
    at, offsets, blob = scanner.rest_texts()
    return Read(
        ended=ended,
        position=scanner.position(),
        counts=scanner.counts(),
        texts=texts,
        tracks=[(identity(pid), identity(tid)) for pid, tid in scanner.tracks()],
        events=[
            (chr(ph), word(name), word(category), track, start, dur)
            for ph, name, category, track, start, dur in zip(*columns.values(), strict=True)
        ],
        layouts=layouts,
        flows=[
            (start, track, identity(id_), word(category), word(name), chr(ph), bool(bind))
            for start, track, id_, category, name, ph, bind in _rows(scanner.flow_rows(), 7)
        ],
        metas=[
            (word(name), identity(pid), identity(tid)) for name, pid, tid in _rows(scanner.meta_rows(), 3)
        ],
        asyncs=[(event, identity(id_)) for event, id_ in _rows(scanner.async_rows(), 2)],
        rest=[(event, bytes(blob[offsets[i] : offsets[i + 1]])) for i, event in enumerate(at)],
        header=header,
    )


def _rows(cells: Sequence[int], width: int) -> list[Row]:
    return [tuple(cells[i : i + width]) for i in range(0, len(cells), width)]


def _layout(native: Any, columns: list[memoryview], slots: list[int], words: list[str]) -> list[Row]:
    text_slots = {slot for _, slot, kind in KEYS if kind == events.TEXT}

    def cell(slot: int, value: int) -> Any:
        if value == native.MISSING:
            return None
        return words[value] if slot in text_slots else value

    return [
        (row[0], *(cell(slot, value) for slot, value in zip(slots, row[1:], strict=True)))
        for row in zip(*columns, strict=True)
    ]


def document(*events_: str) -> bytes:
    """A list of events in an object, each given as the JSON inside its braces."""
    return ('{"traceEvents": [' + ", ".join(f"{{{event}}}" for event in events_) + "]}").encode()
