"""Collectives of compiled programs: their size, type and group, from the instruction that the work is named after.

The size is that of the whole operation, as for all others: an all-gather's output, a reduce-scatter's input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from stepscope.analysis.xla.hlo_module import (
    Instruction,
    Module,
    Shape,
    messages,
    name_of,
    numbers,
)
from stepscope.analysis.xla.loops import root_of
from stepscope.formats.protobuf import fields
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import XLA_CALL_DEPTH, XLA_DEVICES
from stepscope.trace.problems import Problems
from stepscope.trace.trace import Trace

FACTS = {
    "event": pl.UInt32,
    "program_dtype": pl.String,
    "program_bytes": pl.Int64,
    "program_group": pl.String,
    "program_size": pl.Int32,
    "program_ranks": pl.String,
}
# As HLO numbers types: our name, and bytes.
_TYPES = {
    1: ("bool", 1), 2: ("int8", 1), 3: ("int16", 2), 4: ("int32", 4), 5: ("int64", 8), 6: ("uint8", 1), 7: ("uint16", 2),
    8: ("uint32", 4), 9: ("uint64", 8), 10: ("float16", 2), 11: ("float32", 4), 12: ("float64", 8), 15: ("complex64", 8),
    16: ("bfloat16", 2), 18: ("complex128", 16), 19: ("float8_e5m2", 1), 20: ("float8_e4m3fn", 1),
}  # fmt: skip
_REPLICA_GROUPS, _DEVICE_LIST, _IOTA, _MESH = 49, 87, 92, 93
_ASSIGNMENT = 15
_PLACE = ("module", "instruction", "ordinal", "local")
_LARGEST = 1 << 62
_LATER = ("-done", "-update")


@dataclass(frozen=True)
class Facts:
    """What an instruction says of its collective; `groups` are of the numbers that the program gives its devices."""

    dtype: str | None
    size_bytes: int | None
    groups: list[list[int]] | None


def program_facts(trace: Trace, events: pl.Series) -> pl.DataFrame:
    """FACTS of those of the events that are named after an instruction of a program whose code is in the profile."""
    modules = trace.modules.drop_nulls("hlo")
    work = _instructions(trace, events, modules["name"].unique()) if len(modules) else pl.DataFrame()
    if work.is_empty():
        return pl.DataFrame(schema=FACTS)
    rows = []
    for (module,), places in (
        work.select(*_PLACE).unique(maintain_order=True).group_by("module", maintain_order=True)
    ):
        code = modules.filter(pl.col("name") == module)["hlo"].to_list()
        rows += list(_told(code, places, _Devices(_assigned(code[0]), trace)))
    schema = {name: work.schema[name] for name in _PLACE} | {n: d for n, d in FACTS.items() if n != "event"}
    told = pl.DataFrame(rows, schema=schema, orient="row")
    return work.join(told, on=_PLACE, nulls_equal=True, maintain_order="left").select(*FACTS)


def _told(code: Sequence[bytes], places: pl.DataFrame, devices: _Devices) -> Iterator[tuple[object, ...]]:
    """The facts of each instruction on each device."""
    programs = [Module(hlo) for hlo in code]
    known = {name: _agreed(programs, name) for name in places["instruction"].unique()}
    for module, instruction, ordinal, local in places.select(*_PLACE).iter_rows():
        facts = known[instruction]
        if facts is not None:
            group = _group(facts, devices, ordinal, local)
            yield (module, instruction, ordinal, local, facts.dtype, facts.size_bytes, *group)


def _instructions(trace: Trace, events: pl.Series, modules: pl.Series) -> pl.DataFrame:
    """event, module, instruction, ordinal and local: the numbers of its device, as the event and its track tell them."""
    path = pl.col("scope").cast(pl.String).str.split("/")
    ops = trace.ops.select("event", "scope").filter(pl.col("event").is_in(events.implode()))
    named = ops.drop_nulls().select("event", module=path.list.first(), instruction=path.list.last())
    named = named.filter(pl.col("module").is_in(modules.implode())).unique("event", maintain_order=True)
    local = trace.tracks["device"].gather(trace.events["track"].gather(named["event"])).alias("local")
    stats = trace.cold.get("stats_int")
    if stats is None or named.is_empty():
        return named.with_columns(local, ordinal=pl.lit(None, dtype=pl.Int64))
    told = stats.filter(
        pl.col("event").is_in(named["event"].implode()) & (pl.col("key").cast(pl.String) == "device_ordinal")
    )
    told = told.select("event", ordinal=pl.col("value").cast(pl.Int64)).unique("event")
    return named.with_columns(local).join(told, on="event", how="left", maintain_order="left")


def _agreed(programs: Sequence[Module], name: str) -> Facts | None:
    """What the programs of one name say of the instruction; None where they differ."""
    found = [facts for program in programs for facts in _facts(program, name)]
    return found[0] if found and all(facts == found[0] for facts in found) else None


def _facts(program: Module, name: str) -> Iterator[Facts]:
    for number, body in program.bodies.items():
        for place, message in enumerate(body):
            if name_of(message) == name:
                found = _collective(program, number, place)
                groups = _groups(program.bodies[found.computation][found.place])
                yield Facts(*_sized(found, max(map(len, groups), default=0) if groups else None), groups)
                return


@dataclass(frozen=True)
class _Found:
    """A collective, the place where it is written, and what it is given."""

    computation: int
    place: int
    instruction: Instruction
    given: list[Shape]


def _collective(program: Module, computation: int, place: int) -> _Found:
    """What an instruction starts or waits for: its end says neither its groups nor what went in, nor does a start of anything."""
    for _ in range(XLA_CALL_DEPTH):
        instructions = program.instructions(computation)
        places = {one.id: at for at, one in enumerate(instructions)}
        one = instructions[place]
        before = places.get(one.operands[0]) if one.operands else None
        if one.opcode.endswith(_LATER) and before is not None:
            place = before
        elif one.opcode == "async-start" and (inside := _last(program, one)) is not None:
            computation, place = one.called[0], inside
        else:
            break
    instructions = program.instructions(computation)
    one, shapes = instructions[place], {each.id: each.shape for each in instructions}
    return _Found(computation, place, one, [shapes[at] for at in one.operands if at in shapes])


def _last(program: Module, start: Instruction) -> int | None:
    """The place of the instruction that a computation is there for: nothing follows it."""
    body = program.instructions(start.called[0]) if start.called else []
    root = root_of(body)
    return next((at for at, one in enumerate(body) if one is root), None)


def _sized(found: _Found, group_size: int | None) -> tuple[str | None, int | None]:
    """Type and bytes. What only starts a collective gives what goes in, what comes out, and numbers of its own."""
    opcode, shape = found.instruction.opcode, found.instruction.shape
    times: int | None = 1
    if opcode.endswith("-start") and opcode != "all-reduce-start" and len(shape.parts) > 1:
        shapes = [shape.parts[1]]
    elif opcode == "reduce-scatter" and found.given:
        shapes = found.given
    else:
        shapes, times = [shape], group_size if opcode == "reduce-scatter" else 1
    arrays = [array for each in shapes for array in each.arrays()]
    types = {array.element for array in arrays if array.element in _TYPES}
    dtype = _TYPES[next(iter(types))][0] if len(types) == 1 else None
    if not arrays or not times or any(array.element not in _TYPES for array in arrays):
        return dtype, None
    return dtype, min(sum(map(_bytes, arrays)) * times, _LARGEST)


def _bytes(array: Shape) -> int:
    return array.elements * _TYPES[array.element][1]


def _group(
    facts: Facts, devices: _Devices, ordinal: int | None, local: int | None
) -> tuple[str | None, int | None, str | None]:
    """Name, size and members of the group that a device belongs to; all devices are no group of their own."""
    if facts.groups is None:
        return None, None, None
    if len(facts.groups) <= 1:
        return None, len(facts.groups[0]) if facts.groups else devices.count, None
    sizes = {len(group) for group in facts.groups}
    size = sizes.pop() if len(sizes) == 1 else None
    place = devices.place(ordinal, local)
    mine = next((group for group in facts.groups if place in group), None)
    name = f"{len(facts.groups)} groups" + (f" of {size}" if size else "")
    return name, size if mine is None else len(mine), None if mine is None else str(mine)


class _Devices:
    """The devices of a program, in the order of the numbers that it gives them."""

    def __init__(self, numbers: list[int], trace: Trace) -> None:
        self._numbers = numbers
        self._rank, self._world = trace.info.rank, trace.info.world_size
        self._here = trace.tracks["device"].drop_nulls().n_unique() or 1

    @property
    def count(self) -> int | None:
        """How many; None where the program does not tell."""
        return len(self._numbers) or None

    def place(self, ordinal: int | None, local: int | None) -> int | None:
        """The program's number for a device, by the device's own number.

        Else processes are taken to have equally many devices, numbered one process after the other.
        """
        if ordinal in self._numbers:
            return self._numbers.index(ordinal)
        at = local or 0
        if self._rank is None or self._world is None or at >= self._here:
            return None
        if self._world * self._here != len(self._numbers) or self._rank >= self._world:
            return None
        return self._numbers.index(sorted(self._numbers)[self._rank * self._here + at])


def _assigned(hlo: bytes) -> list[int]:
    """The devices of the program, in the order of the numbers that it gives them."""
    for module in messages(memoryview(hlo), 1):
        for assignment in messages(module, _ASSIGNMENT):
            rows = [_repeated(partition, 1) for partition in messages(assignment, 3)]
            replicas = max(map(len, rows), default=0)
            return [row[replica] for replica in range(replicas) for row in rows if replica < len(row)]
    return []


def _repeated(message: memoryview, number: int) -> list[int]:
    return [one for key, value in fields(message, Problems()) if key == number for one in numbers(value)]


def _groups(instruction: memoryview) -> list[list[int]] | None:
    """The groups that are told, in any of the ways that XLA writes them; empty for all devices, None for unreadable."""
    listed = [_repeated(group, 1) for group in messages(instruction, _REPLICA_GROUPS)]
    for devices in messages(instruction, _DEVICE_LIST):
        listed += [_repeated(group, 1) for group in messages(devices, 1)]
        for iota in messages(devices, 2):
            return _from_iota(iota)
    for iota in messages(instruction, _IOTA):
        return _from_iota(iota)
    for mesh in messages(instruction, _MESH):
        return _from_mesh(mesh)
    return [group for group in listed if group]


def _from_iota(message: memoryview) -> list[list[int]] | None:
    """0, 1, 2, … in a box, its axes turned, cut into groups."""
    size = (_repeated(message, 2) or [1])[0]
    return _cut(_repeated(message, 3), _repeated(message, 4), size)


def _from_mesh(message: memoryview) -> list[list[int]] | None:
    """Groups along some axes of a mesh."""
    sizes: list[int] = []
    devices: list[int] = []
    for mesh in messages(message, 1):
        sizes = [(_repeated(axis, 2) or [1])[0] for axis in messages(mesh, 1)]
        devices = _repeated(mesh, 2)
    along = []
    for axis in messages(message, 2):
        if next(messages(axis, 2), None) is not None:
            return None  # a part of an axis
        along.append((_repeated(axis, 1) or [0])[0])
    if any(axis >= len(sizes) for axis in along):
        return None
    others = [axis for axis in range(len(sizes)) if axis not in along]
    groups = _cut(sizes, [*others, *along], math.prod(sizes[axis] for axis in along))
    if groups is None or not devices:
        return groups
    return [[devices[at] for at in group if at < len(devices)] for group in groups]


def _cut(sizes: list[int], turned: list[int], group: int) -> list[list[int]] | None:
    total = math.prod(sizes)
    if (
        not 0 < total <= XLA_DEVICES
        or group < 1
        or sorted(turned or range(len(sizes))) != list(range(len(sizes)))
    ):
        return None
    steps = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    order = [0]
    for axis in turned or range(len(sizes)):
        order = [place + steps[axis] * at for place in order for at in range(sizes[axis])]
    return [order[at : at + group] for at in range(0, total, group)]
