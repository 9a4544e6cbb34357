"""Turns an unpickled memory snapshot into columns. Runs in the worker of stepscope.formats.pickles, with the standard library alone.

What it writes: 8 bytes with the length of a JSON header, the header, then the columns that it lists, one after another.
Lists of frames are numbered: an event names its stack, a stack its frames, so a line that allocates a million times is written once.
"""

from __future__ import annotations

import json
from array import array
from typing import Any

NO_STACK = 0xFFFFFFFF
MOST_DEVICES = 1024
_AT_ONCE = 1 << 16  # events
_MOST_FRAMES = 512  # of a stack; deeper ones are cut at the outer end
_LONGEST_TEXT = 4096
_SIGNED = (-(1 << 62), 1 << 62)
_UNSIGNED = (0, (1 << 64) - 1)


class Columns:
    """Named columns, written in the order in which they were made."""

    def __init__(self) -> None:
        self.columns: dict[str, array[Any]] = {}
        self.texts: dict[str, int] = {}
        self.damaged = 0

    def column(self, name: str, typecode: str) -> array[Any]:
        return self.columns.setdefault(name, array(typecode))

    def text(self, value: Any) -> int:
        """The number of a text."""
        return self.texts.setdefault(value[:_LONGEST_TEXT] if isinstance(value, str) else "", len(self.texts))


class Stacks:
    """Lists of frames as numbers. Frames are found by identity first, which is quick, then by content."""

    def __init__(self, out: Columns) -> None:
        self.out = out
        self.seen: dict[tuple[int, int, int], list[tuple[list[Any], int]]] = {}
        self.by_content: dict[tuple[int, ...], int] = {}
        self.frames: dict[tuple[int, int, int], int] = {}
        self.known: dict[int, int] = {}
        self.alive: list[
            Any
        ] = []  # the frames in `known`: another object must not get the identity of one that is gone

    def number(self, frames: Any) -> int:
        if not frames or not isinstance(frames, list):
            return NO_STACK
        count = len(frames)
        alike = self.seen.setdefault((id(frames[0]), id(frames[count // 2]), count), [])
        for known, number in alike:
            if known == frames:  # quick: the frames of equal lists are the same objects
                return number
        number = self._add(frames[:_MOST_FRAMES])
        self.alive += (frames[0], frames[count // 2])
        alike.append((frames, number))
        return number

    def _add(self, frames: list[Any]) -> int:
        content = tuple(self._frame(frame) for frame in frames)
        found = self.by_content.get(content)
        if found is None:
            found = self.by_content[content] = len(self.by_content)
            self.out.column("stack_frames", "I").extend(content)
            self.out.column("stack_ends", "I").append(len(self.out.columns["stack_frames"]))
        return found

    def _frame(self, frame: Any) -> int:
        known = self.known.get(id(frame))
        if known is None:
            self.alive.append(frame)
            known = self.known[id(frame)] = self._new_frame(frame if isinstance(frame, dict) else {})
        return known

    def _new_frame(self, frame: dict[str, Any]) -> int:
        out = self.out
        line = _number(frame.get("line"), (0, 1 << 31)) or 0
        content = (out.text(frame.get("name")), out.text(frame.get("filename")), line)
        found = self.frames.get(content)
        if found is None:
            found = self.frames[content] = len(self.frames)
            for name, value in zip(("frame_name", "frame_file", "frame_line"), content, strict=True):
                out.column(name, "I").append(value)
        return found


def pack(value: Any, write: Any) -> None:
    """Write the columns of a snapshot; a value of another shape has a header without columns."""
    out = Columns()
    if isinstance(value, list):  # torch.cuda.memory_snapshot() has the segments alone
        value = {"segments": value}
    known = isinstance(value, dict) and isinstance(value.get("segments"), list)
    header: dict[str, Any] = {"known": known}
    if known:
        stacks = Stacks(out)
        _pack_traces(value.get("device_traces"), out, stacks)
        header["settings"] = pack_state(value, out, stacks)
    else:
        header["keys"] = [str(key)[:80] for key in list(value)[:8]] if isinstance(value, dict) else []
        header["type"] = type(value).__name__
    _write(header, out, write)


def pack_state(value: dict[str, Any], out: Columns, stacks: Any) -> dict[str, Any]:
    """All that is not history; returns the allocator's settings."""
    _pack_segments(value["segments"], out, stacks)
    _pack_annotations(value.get("external_annotations"), out)
    settings = value.get("allocator_settings")
    return _plain_settings(settings) if isinstance(settings, dict) else {}


def _write(header: dict[str, Any], out: Columns, write: Any) -> None:
    header["damaged"] = out.damaged
    header["texts"] = list(out.texts)
    header["columns"] = [[name, column.typecode, len(column)] for name, column in out.columns.items()]
    encoded = json.dumps(header).encode("ascii")
    write(len(encoded).to_bytes(8, "little"))
    write(encoded)
    for column in out.columns.values():
        write(memoryview(column).cast("B"))


def _pack_traces(traces: Any, out: Columns, stacks: Stacks) -> None:
    """The events of each device."""
    for device, events in enumerate(traces[:MOST_DEVICES] if isinstance(traces, list) else []):
        count = _pack_device(events if isinstance(events, list) else [], out, stacks)
        out.column("event_device", "I").extend(array("I", [device]) * count)


def _pack_device(events: list[Any], out: Columns, stacks: Stacks) -> int:
    """In pieces, each let go when it is packed: columns must not come on top of all objects."""
    count = 0
    for begin in range(0, len(events), _AT_ONCE):
        rows = events[begin : begin + _AT_ONCE]
        events[begin : begin + _AT_ONCE] = [None] * len(rows)
        try:
            _pack_whole(rows, out, stacks)
            count += len(rows)
        except (KeyError, TypeError, OverflowError, AttributeError):
            count += _pack_careful(rows, out, stacks)
    return count


def _pack_whole(rows: list[Any], out: Columns, stacks: Stacks) -> None:
    """All rows at once; an odd one raises before anything was added."""
    number = stacks.number
    text = out.text
    made = {
        "event_action": array("I", [text(row["action"]) for row in rows]),
        "event_address": array("Q", [row["addr"] if "addr" in row else row["device_free"] for row in rows]),
        "event_bytes": array("q", [row["size"] for row in rows]),
        "event_stream": array("Q", [row["stream"] for row in rows]),
        "event_time": array("q", [row["time_us"] for row in rows]),
    }
    made["event_stack"] = array(
        "I", [NO_STACK if row["action"] == "free_requested" else number(row["frames"]) for row in rows]
    )
    for name, column in made.items():
        if name in out.columns:
            out.columns[name].extend(column)
        else:
            out.columns[name] = column


def _pack_careful(rows: list[Any], out: Columns, stacks: Stacks) -> int:
    """Row by row: what is missing is 0, what is not an event is counted and left out."""
    count = 0
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("action"), str):
            out.damaged += 1
            continue
        where = row.get("addr", row.get("device_free"))
        out.column("event_action", "I").append(out.text(row["action"]))
        out.column("event_address", "Q").append(_number(where, _UNSIGNED) or 0)
        out.column("event_bytes", "q").append(_number(row.get("size"), _SIGNED) or 0)
        out.column("event_stream", "Q").append(_number(row.get("stream"), _UNSIGNED) or 0)
        out.column("event_time", "q").append(_number(row.get("time_us"), _SIGNED) or 0)
        out.column("event_stack", "I").append(stacks.number(row.get("frames")))
        count += 1
    return count


def _pack_segments(segments: list[Any], out: Columns, stacks: Any) -> None:
    for segment in segments:
        address = _number(segment.get("address"), _UNSIGNED) if isinstance(segment, dict) else None
        if address is None:
            out.damaged += 1
            continue
        place = len(out.column("segment_address", "Q"))
        out.column("segment_address", "Q").append(address)
        out.column("segment_bytes", "q").append(_number(segment.get("total_size"), _SIGNED) or 0)
        out.column("segment_stream", "Q").append(_number(segment.get("stream"), _UNSIGNED) or 0)
        out.column("segment_device", "q").append(_number(segment.get("device"), (0, MOST_DEVICES)) or 0)
        out.column("segment_kind", "I").append(out.text(segment.get("segment_type")))
        out.column("segment_expandable", "B").append(bool(segment.get("is_expandable")))
        out.column("segment_stack", "I").append(stacks.number(segment.get("frames")))
        blocks = segment.get("blocks")
        _pack_blocks(place, address, blocks if isinstance(blocks, list) else [], out, stacks)


def _pack_blocks(segment: int, address: int, blocks: list[Any], out: Columns, stacks: Any) -> None:
    at = address
    for block in blocks:
        size = _number(block.get("size"), _SIGNED) if isinstance(block, dict) else None
        if size is None or size < 0:
            out.damaged += 1
            continue
        at = _number(block.get("address", at), _UNSIGNED) or at  # old versions give sizes alone
        requested = _number(block.get("requested_size"), _SIGNED)
        out.column("block_segment", "I").append(segment)
        out.column("block_address", "Q").append(at)
        out.column("block_bytes", "q").append(size)
        out.column("block_requested", "q").append(size if requested is None else requested)
        out.column("block_state", "I").append(out.text(block.get("state")))
        out.column("block_stack", "I").append(stacks.number(_frames_of(block)))
        at = min(at + size, _UNSIGNED[1])


def _frames_of(block: dict[str, Any]) -> Any:
    """PyTorch 2.0 kept them in a history, the newest first."""
    history = block.get("history")
    if "frames" not in block and isinstance(history, list) and history and isinstance(history[0], dict):
        return history[0].get("frames")
    return block.get("frames")


def _pack_annotations(rows: Any, out: Columns) -> None:
    for row in rows if isinstance(rows, list) else []:
        time = _number(row.get("time_us"), _SIGNED) if isinstance(row, dict) else None
        if time is None:
            out.damaged += 1
            continue
        out.column("note_name", "I").append(out.text(row.get("name")))
        out.column("note_begins", "B").append(row.get("stage") == "START")
        out.column("note_device", "q").append(_number(row.get("device"), (0, MOST_DEVICES)) or 0)
        out.column("note_time", "q").append(time)


def _plain_settings(settings: dict[Any, Any]) -> dict[str, Any]:
    pairs = list(settings.items())[:64]
    return {
        str(key)[:80]: value if isinstance(value, (bool, int, float)) else str(value)[:200]
        for key, value in pairs
        if not isinstance(value, int) or abs(value) < 1 << 53
    }


def _number(value: Any, within: tuple[int, int]) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if within[0] <= value <= within[1] else None
