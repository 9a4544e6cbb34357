"""A Kineto trace many times over: the text of the file is kept, copies are shifted in time and their ids kept apart."""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IDS = (
    "correlation",
    "External id",
    "external id",
    "Record function id",
    "Sequence number",
    "Ev Idx",
    "Python id",
    "Python parent id",
)
_ID = re.compile(r'("(?:' + "|".join(IDS) + r')": ?)(\d+)')
_FLOW_ID = re.compile(r'("id": ?)(\d+)')
_TIME = re.compile(r'("ts": ?)(\d+)')
_STEP = re.compile(r'("ProfilerStep#)(\d+)')
_COUNTED_FROM_ZERO = ("Ev Idx", "Python id", "Python parent id")


@dataclass(frozen=True)
class Strides:
    """By how much one copy differs from the one before."""

    microseconds: int
    ids: int
    steps: int


@dataclass(frozen=True)
class Template:
    """The text of one event with a %d where copies differ."""

    text: str
    values: tuple[int, ...]
    strides: tuple[int, ...]

    def copy(self, number: int) -> str:
        """The event's text in the copy with this number; copy 0 is the event as recorded."""
        return self.text % tuple(
            value + number * stride for value, stride in zip(self.values, self.strides, strict=True)
        )


def repeat(source: Path, target: Path, at_least: int) -> int:
    """Write the trace as often as needed to hold `at_least` events. Returns how many it holds."""
    text = _read(source)
    events, first, last = _events(text)
    strides = _strides([event for event, _ in events])
    metadata = [piece for event, piece in events if event.get("ph") == "M"]
    templates = [_template(event, piece, strides) for event, piece in events if event.get("ph") != "M"]
    copies = max(1, math.ceil((at_least - len(metadata)) / len(templates)))
    with target.open("w", encoding="utf-8", newline="") as out:
        out.write(text[:first])
        for number in range(copies):
            out.writelines(template.copy(number) + ",\n  " for template in templates)
        out.write(",\n  ".join(metadata))
        out.write(text[last:])
    return len(metadata) + copies * len(templates)


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def _events(text: str) -> tuple[list[tuple[dict[str, Any], str]], int, int]:
    """Each event as a value and as text, and where the first begins and the last ends."""
    opening = re.search(r'"traceEvents"\s*:\s*\[\s*', text)
    if opening is None:
        raise SystemExit("No traceEvents in this file: it is no Kineto trace.")
    found = list(_decoded(text, opening.end()))
    return [(event, piece) for event, piece, _ in found], opening.end(), found[-1][2]


def _decoded(text: str, place: int) -> Iterator[tuple[dict[str, Any], str, int]]:
    decoder = json.JSONDecoder()
    between = re.compile(r"[\s,]*")
    while text[place] == "{":
        event, end = decoder.raw_decode(text, place)
        yield event, text[place:end], end
        following = between.match(text, end)
        place = following.end() if following else end


def _strides(events: list[dict[str, Any]]) -> Strides:
    timed = [event for event in events if event.get("ph") == "X"]
    begin = min(event["ts"] for event in timed)
    end = max(event["ts"] + event.get("dur", 0) for event in timed)
    names = (event.get("name", "") for event in timed)
    steps = {name for name in names if name.startswith("ProfilerStep#")}
    return Strides(math.ceil(end - begin) + 1, 1 + max(_ids(events), default=0), len(steps))


def _ids(events: list[dict[str, Any]]) -> Iterator[int]:
    for event in events:
        arguments = event.get("args")
        named = [arguments.get(name) for name in IDS] if isinstance(arguments, dict) else []
        for value in (event.get("id"), *named):
            if isinstance(value, int):
                yield value


def _template(event: dict[str, Any], text: str, strides: Strides) -> Template:
    """Only the first time stamp and step number count; every id does, unless it is 0 and means none."""
    slots: dict[int, tuple[int, int, int]] = {}
    for pattern, stride in ((_TIME, strides.microseconds), (_STEP, strides.steps)):
        if found := pattern.search(text):
            slots[found.start(2)] = (found.end(2), int(found[2]), stride)
    ids = (_ID, _FLOW_ID) if event.get("ph") in ("s", "t", "f") else (_ID,)
    for pattern in ids:
        for found in pattern.finditer(text):
            if int(found[2]) or found[1].startswith(tuple(f'"{name}"' for name in _COUNTED_FROM_ZERO)):
                slots[found.start(2)] = (found.end(2), int(found[2]), strides.ids)
    return _cut(text, slots)


def _cut(text: str, slots: dict[int, tuple[int, int, int]]) -> Template:
    pieces, values, strides, place = [], [], [], 0
    for start in sorted(slots):
        end, value, stride = slots[start]
        pieces.append(text[place:start].replace("%", "%%"))
        values.append(value)
        strides.append(stride)
        place = end
    pieces.append(text[place:].replace("%", "%%"))
    return Template("%d".join(pieces), tuple(values), tuple(strides))


if __name__ == "__main__":
    print(repeat(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
