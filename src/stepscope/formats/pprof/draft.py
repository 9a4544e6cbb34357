"""A device memory profile as a draft of a trace: each sample is a block, and the stack that allocated it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.pprof import FORMAT
from stepscope.formats.protobuf import Value, fields, signed, text
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problems
from stepscope.trace.schema import TABLES, DeviceKind, Kind, Text, TrackUse
from stepscope.trace.trace import TraceInfo

_MOST_BYTES = 2**62
_NUMBER = re.compile(r"(\d{1,4})\D*$")
_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6


def read(source: Source, progress: Progress) -> Draft:
    """The buffers and programs of all devices, at one moment."""
    problems = Problems()
    parts = _split(memoryview(bytes(source.content())), problems)
    progress(source.size())
    place = _place_of_bytes(parts)
    if place is None:
        raise UnreadableFile(
            f"{source.path} is a pprof profile without bytes of memory.",
            fix="Write one with: jax.profiler.save_device_memory_profile('memory.prof')",
        )
    samples = [_sample(message, place, parts) for message in parts[_SAMPLE]]
    held = [each for each in samples if 0 < each["bytes"] < _MOST_BYTES]
    if not held:
        raise UnreadableFile(f"{source.path} holds no memory that is in use.")
    draft = _make_draft(held, parts, source.path, problems)
    for each in source.problems.all():
        draft.problems.add(each)
    return draft


class _Parts(dict[int, list[Any]]):
    """The messages of the file by their field; `texts` is the table of strings."""

    problems: Problems

    def text(self, number: int) -> str:
        texts = self[_STRING]
        return texts[number] if number < len(texts) else ""


def _split(content: memoryview, problems: Problems) -> _Parts:
    parts = _Parts({number: [] for number in (_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING)})
    parts.problems = problems
    for number, value in fields(content, problems):
        if number == _STRING:
            parts[number].append(text(value))
        elif number in parts and not isinstance(value, int):
            parts[number].append(value)
    return parts


def _place_of_bytes(parts: _Parts) -> int | None:
    """Which value of a sample counts bytes."""
    for place, message in enumerate(parts[_TYPE]):
        if parts.text(_numbers(message, parts.problems).get(2, 0)) == "bytes":
            return place
    return None


def _numbers(message: memoryview, problems: Problems) -> dict[int, int]:
    return {number: value for number, value in fields(message, problems) if isinstance(value, int)}


def _sample(message: memoryview, place: int, parts: _Parts) -> dict[str, Any]:
    found: dict[str, Any] = {"locations": [], "values": [], "labels": {}}
    for number, value in fields(message, parts.problems):
        if number == 1:
            found["locations"] += _varints(value)
        elif number == 2:
            found["values"] += [signed(each) for each in _varints(value)]
        elif number == 3 and not isinstance(value, int):
            label = _numbers(value, parts.problems)
            found["labels"][parts.text(label.get(1, 0))] = parts.text(label.get(2, 0))
    values = found["values"]
    return {**found, "bytes": values[place] if place < len(values) else 0}


def _varints(value: Value) -> Iterator[int]:
    """Numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        yield value
        return
    number, shift = 0, 0
    for byte in value:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            yield number & (2**64 - 1)
            number, shift = 0, 0


def _make_draft(held: list[dict[str, Any]], parts: _Parts, path: str, problems: Problems) -> Draft:
    stacks: dict[tuple[int, ...], int] = {}
    rows = []
    at = 0
    for each in held:
        rows.append(
            {
                "device": _device(each["labels"].get("device", "")),
                "segment": at,
                "segment_bytes": each["bytes"],
                "segment_kind": each["labels"].get("kind") or "buffer",
                "address": at,
                "bytes": each["bytes"],
                "requested": each["bytes"],
                "state": "active_allocated",
                "stack": stacks.setdefault(tuple(each["locations"]), len(stacks))
                if each["locations"]
                else None,
            }
        )
        at = (at + each["bytes"]) % _MOST_BYTES
    names = sorted({each["labels"].get("device", "") for each in held})
    devices = sorted({row["device"] for row in rows})
    columns = {name: kind for name, kind in TABLES["blocks"].items() if name in rows[0]}
    return Draft(
        info=TraceInfo(path=path, format=FORMAT.name, framework="jax", devices=[{"id": _device(name), "name": name} for name in names]),
        events=pl.DataFrame(
            {"track": devices, "name": ["snapshot"] * len(devices), "kind": ["instant"] * len(devices)},
            schema={"track": pl.UInt32, "name": Text, "kind": Kind},
        ).with_columns(source_category=pl.lit("memory", dtype=Text), start_ns=pl.lit(0, dtype=pl.Int64), dur_ns=pl.lit(0, dtype=pl.Int64)),
        tracks=pl.DataFrame(
            {"id": devices, "process": [f"device {each}" for each in devices]}, schema={"id": pl.UInt32, "process": pl.String}
        ).with_columns(thread=pl.lit("memory"), device_kind=pl.lit("cpu", dtype=DeviceKind), what=pl.lit("host", dtype=TrackUse)),
        blocks=pl.DataFrame(rows, schema=columns),
        frames=_make_frames(stacks, parts),
        problems=problems,
    )  # fmt: skip


def _device(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found[1]) if found else 0


def _make_frames(stacks: dict[tuple[int, ...], int], parts: _Parts) -> pl.DataFrame:
    functions = {}
    for message in parts[_FUNCTION]:
        found = _numbers(message, parts.problems)
        functions[found.get(1, 0)] = parts.text(found.get(2, 0)), parts.text(found.get(4, 0))
    locations = dict(_location(message, parts.problems) for message in parts[_LOCATION])
    rows = []
    for stack, number in stacks.items():
        lines = [line for location in stack for line in locations.get(location, [])]
        rows += [
            (number, depth, *functions.get(function, ("", "")), line)
            for depth, (function, line) in enumerate(lines[:512])
        ]
    return pl.DataFrame(rows, schema=TABLES["frames"], orient="row")


def _location(message: memoryview, problems: Problems) -> tuple[int, list[tuple[int, int]]]:
    """Its number, and function and line of each frame there: the innermost first."""
    number, lines = 0, []
    for field, value in fields(message, problems):
        if field == 1 and isinstance(value, int):
            number = value
        elif field == 4 and not isinstance(value, int):
            line = _numbers(value, problems)
            lines.append((line.get(1, 0), min(line.get(2, 0), 2**31 - 1)))
    return number, lines
