"""An XPlane file many times over: events are copied as bytes, shifted in time, and their ids kept apart."""

from __future__ import annotations

import gzip
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.capture.files.protobuf import head, read_varint, varint

# Numbers of the fields that matter here, by message.
SPACE_PLANES = 1
PLANE_NAME, PLANE_LINES, PLANE_STAT_NAMES, PLANE_STATS = 2, 3, 5, 6
LINE_START_NS, LINE_EVENTS, LINE_DURATION_PS = 3, 4, 9
EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS, EVENT_OCCURRENCES = 2, 3, 4, 5
STAT_NAME, STAT_UINT, STAT_INT = 1, 3, 4
KEY, VALUE = 1, 2

# Stats that name other events join within their group only, so each group has its own stride.
GROUPS = {"correlation_id": "launch", "step_num": "step", "element_id": "element"} | dict.fromkeys(
    ("_p", "_c", "id", "parent_id", "run_id", "step_id"), "context"
)
SMALL = 1 << 31
WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Field:
    """One field of a message: where its tag begins, its value if it is a number, else its bytes."""

    number: int
    tag: bytes
    value: int
    data: bytes | None

    def raw(self) -> bytes:
        """The field as it stood in the file."""
        if self.data is None:
            return self.tag + varint(self.value)
        return self.tag + (varint(len(self.data)) if self.tag[-1] & 7 == 2 else b"") + self.data


@dataclass
class Strides:
    """By how much one copy differs from the one before: picoseconds, and each group of ids."""

    picoseconds: int = 0
    groups: dict[str, int] = field(default_factory=dict)


# A piece of an event is bytes that stay, a number with its tag and stride, or a stat made of pieces.
Number = tuple[bytes, int, int]
Piece = bytes | Number | list["bytes | Number"]


def message(number: int, data: bytes) -> bytes:
    """A field that holds bytes."""
    return head(number, len(data)) + data


def fields(data: bytes) -> Iterator[Field]:
    """The fields of one message, in order."""
    place = 0
    while place < len(data):
        start = place
        key, place = read_varint(data, place)
        tag, kind = data[start:place], key & 7
        if kind == 0:
            value, place = read_varint(data, place)
            yield Field(key >> 3, tag, value, None)
            continue
        length, place = (8, place) if kind == 1 else (4, place) if kind == 5 else read_varint(data, place)
        yield Field(key >> 3, tag, 0, data[place : place + length])
        place += length


def repeat(source: Path, target: Path, at_least: int) -> int:
    """Write the file as often as needed to hold `at_least` events. Returns how many it holds."""
    data = source.read_bytes()
    space = list(fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
    planes = [list(fields(part.data or b"")) for part in space if part.number == SPACE_PLANES]
    strides = _strides(planes)
    per_copy = sum(1 for _ in _all_events(planes))
    copies = max(1, math.ceil(at_least / per_copy))
    with target.open("wb") as out:
        for plane in planes:
            out.write(message(SPACE_PLANES, _plane(plane, strides, copies)))
        out.writelines(part.raw() for part in space if part.number != SPACE_PLANES)
    return per_copy * copies


def _stat_groups(plane: list[Field]) -> dict[int, str]:
    """The group of each stat that is an id, by the number that stands for its name in this plane."""
    found = {}
    for part in plane:
        if part.number == PLANE_STAT_NAMES:
            entry = {item.number: item for item in fields(part.data or b"")}
            names = [item.data for item in fields(entry[VALUE].data or b"") if item.number == 2]
            name = (names[0] or b"").decode() if names else ""
            if name in GROUPS or name == "profile_stop_time":
                found[entry[KEY].value] = GROUPS.get(name, "stop")
    return found


def _all_events(planes: list[list[Field]]) -> Iterator[tuple[dict[int, str], int, list[Field]]]:
    """Every event with its plane's groups and the start of its line in picoseconds."""
    for plane in planes:
        groups = _stat_groups(plane)
        for line in (list(fields(part.data or b"")) for part in plane if part.number == PLANE_LINES):
            start = next((part.value for part in line if part.number == LINE_START_NS), 0) * 1000
            for part in line:
                if part.number == LINE_EVENTS:
                    yield groups, start, list(fields(part.data or b""))


def _strides(planes: list[list[Field]]) -> Strides:
    begin, end = WORD, 0
    ids: dict[str, set[int]] = defaultdict(set)
    for groups, start, event in _all_events(planes):
        numbers = {part.number: part.value for part in event}
        begin = min(begin, start + numbers.get(EVENT_OFFSET_PS, 0))
        end = max(end, start + numbers.get(EVENT_OFFSET_PS, 0) + numbers.get(EVENT_DURATION_PS, 0))
        for part in event:
            if part.number == EVENT_STATS:
                group, value = _id_of(part.data or b"", groups)
                ids[group].add(value)
    apart = {
        group: 1 + max((value for value in values if value < SMALL), default=0)
        for group, values in ids.items()
    }
    picoseconds = ((end - begin) // 1000 + 1000) * 1000
    return Strides(picoseconds, apart | {"step": len(ids["step"]), "": 0, "stop": 0})


def _id_of(stat: bytes, groups: dict[int, str]) -> tuple[str, int]:
    numbers = {part.number: part.value for part in fields(stat)}
    value = numbers.get(STAT_UINT, numbers.get(STAT_INT, 0))
    return groups.get(numbers.get(STAT_NAME, 0), ""), value


def _plane(plane: list[Field], strides: Strides, copies: int) -> bytes:
    groups = _stat_groups(plane)
    out = bytearray()
    for part in plane:
        if part.number == PLANE_LINES:
            out += message(PLANE_LINES, _line(part.data or b"", groups, strides, copies))
        elif part.number == PLANE_STATS and _id_of(part.data or b"", groups)[0] == "stop":
            out += message(PLANE_STATS, _later(part.data or b"", (copies - 1) * strides.picoseconds // 1000))
        else:
            out += part.raw()
    return bytes(out)


def _later(stat: bytes, by: int) -> bytes:
    """A stat that holds a time, moved."""
    moved = (
        part.tag + varint(part.value + by) if part.number in (STAT_UINT, STAT_INT) else part.raw()
        for part in fields(stat)
    )
    return b"".join(moved)


def _line(line: bytes, groups: dict[int, str], strides: Strides, copies: int) -> bytes:
    parts = list(fields(line))
    templates = [_template(part.data or b"", groups, strides) for part in parts if part.number == LINE_EVENTS]
    out = bytearray()
    for part in parts:
        if part.number == LINE_DURATION_PS:
            out += part.tag + varint(part.value + (copies - 1) * strides.picoseconds)
        elif part.number != LINE_EVENTS:
            out += part.raw()
    for number in range(copies):
        for template in templates:
            out += message(LINE_EVENTS, _copy(template, number))
    return bytes(out)


def _template(event: bytes, groups: dict[int, str], strides: Strides) -> list[Piece]:
    parts = list(fields(event))
    pieces: list[Piece] = []
    if not any(part.number in (EVENT_OFFSET_PS, EVENT_OCCURRENCES) for part in parts):
        pieces.append(
            (bytes([EVENT_OFFSET_PS << 3]), 0, strides.picoseconds)
        )  # offset 0 is left out of the file
    for part in parts:
        if part.number == EVENT_OFFSET_PS:
            pieces.append((part.tag, part.value, strides.picoseconds))
        elif part.number == EVENT_STATS and _is_id(part.data or b"", groups):
            pieces.append(
                _stat_template(part.data or b"", strides.groups[_id_of(part.data or b"", groups)[0]])
            )
        else:
            pieces.append(part.raw())
    return _joined(pieces)


def _is_id(stat: bytes, groups: dict[int, str]) -> bool:
    """Whether copies differ in this stat; an id of 0 means none, but step 0 is a step."""
    group, value = _id_of(stat, groups)
    return group == "step" or (group != "" and value != 0)


def _stat_template(stat: bytes, stride: int) -> list[bytes | Number]:
    return [
        (part.tag, part.value, stride) if part.number in (STAT_UINT, STAT_INT) else part.raw()
        for part in fields(stat)
    ]


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring bytes put together, so that copies are made of few pieces."""
    out: list[Piece] = []
    for piece in pieces:
        if out and isinstance(piece, bytes) and isinstance(out[-1], bytes):
            out[-1] += piece
        else:
            out.append(piece)
    return out


def _copy(pieces: list[Piece], number: int) -> bytes:
    out = bytearray()
    for piece in pieces:
        if isinstance(piece, bytes):
            out += piece
        elif isinstance(piece, tuple):
            out += piece[0] + varint(piece[1] + number * piece[2] & WORD)
        else:
            out += message(EVENT_STATS, _copy(list(piece), number))
    return bytes(out)


if __name__ == "__main__":
    print(repeat(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
