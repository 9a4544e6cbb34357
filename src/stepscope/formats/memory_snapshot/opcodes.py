"""A plain snapshot read by its opcodes, in this process: history becomes columns at once, so it never is a million objects."""

from __future__ import annotations

import mmap
from typing import Any

import polars as pl

from stepscope.formats.memory_snapshot.packer import MOST_DEVICES, NO_STACK, Columns, pack_state
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.native.pickles.snapshot import COMPILED, Machine, Rows, Stack, Unusual
from stepscope.trace.columns import series

__all__ = ["COMPILED", "read_opcodes"]

_AT_ONCE = 1 << 25  # bytes of the file that are in memory
_MOST_VALUES = 100  # of one setting
_TYPES: dict[str, Any] = {
    "action": pl.UInt32, "address": pl.UInt64, "bytes": pl.Int64, "stream": pl.UInt64, "time": pl.Int64, "stack": pl.UInt32,
}  # fmt: skip
Found = tuple[dict[str, Any], list[tuple[str, str, Any]]]


def read_opcodes(source: Source, progress: Progress) -> Found | None:
    """The header and the columns, as the packer makes them; None where the file is not what PyTorch writes, or packed."""
    if source.filesystem is not None or source.is_packed():
        return None
    content = source.content()
    if not isinstance(content, mmap.mmap):
        return None
    try:
        machine = _run(content, progress)
        return _collect(machine)
    except (Unusual, UnicodeDecodeError, IndexError, OverflowError):
        return None


def _run(content: mmap.mmap, progress: Progress) -> Machine:
    """What was read is given back to the system: the file must not stay in memory beside its columns."""
    machine = Machine(content)
    while machine.run(machine.place() + _AT_ONCE):
        progress(machine.place())
        if hasattr(mmap, "MADV_DONTNEED"):
            content.madvise(mmap.MADV_DONTNEED, 0, machine.place() & -mmap.PAGESIZE)
    return machine


def _collect(machine: Machine) -> Found:
    value = machine.result()
    value = {"segments": value} if isinstance(value, list) else value
    if not isinstance(value, dict) or not isinstance(value.get("segments"), list):
        raise Unusual
    if not _is_flat(value.get("allocator_settings")):
        raise Unusual
    out = Columns()
    stacks = _Stacks(machine, out)
    events = _collect_events(machine, value.get("device_traces"), out, stacks)
    settings = pack_state(value, out, stacks)
    rest = [(name, column.typecode, column) for name, column in out.columns.items()]
    header = {"known": True, "settings": settings, "damaged": out.damaged, "texts": list(out.texts)}
    return header, [*events, *rest]


def _collect_events(
    machine: Machine, traces: Any, out: Columns, stacks: _Stacks
) -> list[tuple[str, str, pl.Series]]:
    events = {name: series(name, column, _TYPES[name]) for name, column in machine.events().items()}
    if not len(events["action"]):
        return []
    events["action"] = _name_actions(events["action"], machine, out)
    events["stack"] = stacks.number_all(events["stack"])
    events["device"] = _number_devices(traces, machine)
    return [(f"event_{name}", "", column) for name, column in events.items()]


def _is_flat(settings: Any) -> bool:
    """Values that hold each other many times over would take for ever to write as text."""
    values = settings.values() if isinstance(settings, dict) else ()
    return all(_is_short(value) for value in values)


def _is_short(value: Any) -> bool:
    if not isinstance(value, (list, tuple, dict)):
        return True
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return len(inner) <= _MOST_VALUES and not any(isinstance(each, (list, tuple, dict)) for each in inner)


def _name_actions(codes: pl.Series, machine: Machine, out: Columns) -> pl.Series:
    """The numbers of the texts in `out`."""
    numbers = {code: out.text(machine.text(code)) for code in codes.unique()}
    named: pl.Series = codes.replace_strict(numbers, return_dtype=pl.UInt32)
    return named


def _number_devices(traces: Any, machine: Machine) -> pl.Series:
    """The device of each event: the place of its list among all."""
    lists = traces[:MOST_DEVICES] if isinstance(traces, list) else []
    places = {rows.number: device for device, rows in enumerate(lists) if isinstance(rows, Rows)}
    runs = machine.lists_of_events()
    if any(number not in places for number, _ in runs):
        raise Unusual
    devices = pl.Series([places[number] for number, _ in runs], dtype=pl.UInt32)
    counts = pl.Series([count for _, count in runs], dtype=pl.Int64)
    named: pl.Series = devices.repeat_by(counts).explode()
    return named


class _Stacks:
    """Numbers for stacks in the order of their first use, as the packer gives them; unused ones get none."""

    def __init__(self, machine: Machine, out: Columns) -> None:
        self.machine = machine
        self.out = out
        self.frames = machine.all_frames()
        self.numbers: dict[int, int] = {}
        self.frame_numbers: dict[int, int] = {}

    def number(self, frames: Any) -> int:
        """The number of a list of frames."""
        return self._number(frames.number) if isinstance(frames, Stack) else NO_STACK

    def number_all(self, column: pl.Series) -> pl.Series:
        """The same for a column."""
        used = column.filter(column != NO_STACK).unique(maintain_order=True)
        numbers = {NO_STACK: NO_STACK, **{each: self._number(each) for each in used}}
        named: pl.Series = column.replace_strict(numbers, return_dtype=pl.UInt32)
        return named

    def _number(self, stack: int) -> int:
        found = self.numbers.get(stack)
        if found is None:
            found = self.numbers[stack] = len(self.numbers)
            self.out.column("stack_frames", "I").extend(map(self._frame, self.machine.frames_of(stack)))
            self.out.column("stack_ends", "I").append(len(self.out.columns["stack_frames"]))
        return found

    def _frame(self, frame: int) -> int:
        found = self.frame_numbers.get(frame)
        if found is None:
            found = self.frame_numbers[frame] = len(self.frame_numbers)
            name, file, line = self.frames[frame]
            texts = [self.out.text(self.machine.text(code)) for code in (name, file)]
            for column, value in zip(("frame_name", "frame_file", "frame_line"), (*texts, line), strict=True):
                self.out.column(column, "I").append(value)
        return found
