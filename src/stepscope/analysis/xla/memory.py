"""The memory of a compiled program, from XLA's buffer assignment: no allocator sees what happens inside a program.

Peak = the sum of the program's allocations: arguments, outputs, constants and one block for all that is temporary, whose
size XLA settled when it compiled. Live at the peak: arguments and outputs by name, and of the temporary block the
buffers that are live when they take most: from the instruction that makes a value to the last one that reads it.
An argument whose place an output takes, or that is called params, state or the like, is a `parameter` (weights and
optimizer state), another argument is an `input`. A buffer made in the forward pass and read last in the backward pass is an `activation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

import polars as pl

from stepscope.analysis.xla.hlo_module import Module, messages
from stepscope.analysis.xla.instruction_cost import Worker
from stepscope.formats.protobuf import fields
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import XLA_BUFFER_PAIRS, XLA_BUFFERS, XLA_MEMORY_BYTES
from stepscope.trace.problems import Problems

LIVE = {"kind": pl.String, "op": pl.String, "scope": pl.String, "bytes": pl.Int64}
_HANDED_ON = ("bitcast", "tuple", "get-tuple-element")  # the value of an operand under another name
_STATE = re.compile(r"(?i)^(params?|weights?|state|model|variables|opt)")
_BACKWARD, _FORWARD = "transpose(", "jvp("


@dataclass
class Allocation:
    """A block of memory that the program has for itself while it runs."""

    index: int = 0
    size: int = 0
    thread_local: bool = False
    parameter: bool = False
    live_out: bool = False
    constant: bool = False
    buffers: dict[int, tuple[int, int]] = field(default_factory=dict)  # offset and size


@dataclass
class Life:
    """From when to when a buffer holds a value, and where in its block."""

    begin: int
    end: int
    offset: int
    size: int


@dataclass
class Buffer:
    """A value of the program: its size, and the instruction that makes it."""

    id: int = 0
    size: int = 0
    instruction: int = 0


@dataclass(frozen=True)
class ProgramMemory:
    """`at_peak`: kind, op, scope, bytes; sums to the peak."""

    peak_bytes: int
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    at_peak: pl.DataFrame


def program_memory(module: Module) -> ProgramMemory | None:
    """None where the profile has no buffer assignment."""
    if module.buffers is None:
        return None
    allocations = [_allocation(message) for message in messages(module.buffers, 3)]
    mine = [one for one in allocations if not one.thread_local and 0 < one.size <= XLA_MEMORY_BYTES]
    if not mine:
        return None
    buffers = {one.id: one for one in map(_buffer, messages(module.buffers, 1))}
    named = _Names(module)
    made = _lives(module)
    rows = [row for one in mine for row in _rows(module, one, buffers, named, made)]
    temporary = [one for one in mine if _is_temporary(one)]
    live = (
        pl.DataFrame(rows, schema=LIVE, orient="row")
        .group_by("kind", "op", "scope")
        .agg(pl.col("bytes").sum())
    )
    return ProgramMemory(
        peak_bytes=sum(one.size for one in mine),
        argument_bytes=sum(one.size for one in mine if one.parameter),
        output_bytes=sum(one.size for one in mine if one.live_out),
        alias_bytes=sum(one.size for one in mine if one.parameter and one.live_out),
        temporary_bytes=sum(one.size for one in temporary),
        at_peak=live.filter(pl.col("bytes") > 0).sort(
            "bytes", "kind", "op", "scope", descending=[True, False, False, False], nulls_last=True
        ),
    )


LIVES = {"begin": pl.Int64, "end": pl.Int64, **LIVE}


def program_lives(module: Module) -> pl.DataFrame:
    """Every buffer from the instruction that makes it to the last one that reads it (LIVES); empty without a buffer assignment.

    Arguments and constants are there all the time, outputs from when they are made.
    """
    if module.buffers is None:
        return pl.DataFrame(schema=LIVES)
    allocations = [_allocation(message) for message in messages(module.buffers, 3)]
    buffers = {one.id: one for one in map(_buffer, messages(module.buffers, 1))}
    named, made, last = _Names(module), _lives(module), max(0, len(module.in_order) - 1)
    rows: list[tuple[int, int, str, str | None, str | None, int]] = []
    for one in allocations:
        if one.thread_local or not 0 < one.size <= XLA_MEMORY_BYTES:
            continue
        if _is_temporary(one) and len(one.buffers) <= XLA_BUFFERS:
            for number, life in _in_block(one, buffers, made).items():
                maker = buffers[number].instruction
                op, scope = named.of(maker)
                reader = named.of(module.in_order[made[maker][1]].id)[1]
                rows.append((life.begin, life.end, _kind(scope or "", reader or ""), op, scope, life.size))
            continue
        first = 0
        if one.live_out and not one.parameter:
            first = min((made[m][0] for n in one.buffers if (m := _maker(buffers, n)) in made), default=0)
        for kind, op, scope, size in _rows(module, one, buffers, named, made):
            rows.append((first, last, kind, op, scope, size))
    return pl.DataFrame(rows, schema=LIVES, orient="row")


class _Names:
    """Op and scope of the instructions that make buffers."""

    def __init__(self, module: Module) -> None:
        self._worker = Worker(module)
        self._instructions = {i.id: i for number in module.bodies for i in module.instructions(number)}

    def parameter(self, number: int) -> str | None:
        """The argument that the instruction is, as the program calls it."""
        found = self._instructions.get(number)
        is_argument = found is not None and found.opcode == "parameter"
        return (found.op_name or found.name) if found is not None and is_argument else None

    def of(self, number: int) -> tuple[str | None, str | None]:
        found = self._instructions.get(number)
        return self._worker.named(found) if found is not None else (None, None)


Row = tuple[str, str | None, str | None, int]
Made = dict[int, tuple[int, int]]  # by instruction: when its value is made, and when it is read last


def _rows(
    module: Module, one: Allocation, buffers: dict[int, Buffer], named: _Names, made: Made
) -> Iterator[Row]:
    """What the allocation holds at the peak."""
    makers = sorted(
        (_maker(buffers, number) for number in one.buffers), key=lambda maker: made.get(maker, (-1, -1))
    )
    if one.parameter:
        name = next((told for maker in makers if (told := named.parameter(maker))), None)
        kept = one.live_out or (name is not None and _STATE.search(name) is not None)
        yield ("parameter" if kept else "input", "parameter", name, one.size)
    elif one.constant:
        yield "temporary", "constant", None, one.size
    elif one.live_out or len(makers) == 1:
        op, scope = named.of(makers[-1]) if makers else (None, None)
        yield "output" if one.live_out else "temporary", op, scope, one.size
    else:
        yield from _block(module, one, buffers, named, made)


def _block(
    module: Module, one: Allocation, buffers: dict[int, Buffer], named: _Names, made: Made
) -> Iterator[Row]:
    """The temporary block when most of it is in use; the rest of it is lost to alignment and gaps."""
    lives = _in_block(one, buffers, made) if len(one.buffers) <= XLA_BUFFERS else {}
    known = 0
    for number in _fullest(lives):
        maker = buffers[number].instruction
        op, scope = named.of(maker)
        reader = named.of(module.in_order[made[maker][1]].id)[1]
        known += lives[number].size
        yield _kind(scope or "", reader or ""), op, scope, lives[number].size
    if one.size > known:
        yield "unknown", None, None, one.size - known


def _kind(made_in: str, read_last_in: str) -> str:
    made_forward = _FORWARD in made_in and _BACKWARD not in made_in
    return "activation" if made_forward and _BACKWARD in read_last_in else "temporary"


def _fullest(lives: dict[int, Life]) -> list[int]:
    """The buffers that are live when they take most."""
    changes: dict[int, int] = {}
    for life in lives.values():
        changes[life.begin] = changes.get(life.begin, 0) + life.size
        changes[life.end + 1] = changes.get(life.end + 1, 0) - life.size
    size, most, at = 0, 0, 0
    for moment in sorted(changes):
        size += changes[moment]
        if size > most:
            most, at = size, moment
    return [number for number, life in lives.items() if life.begin <= at <= life.end]


def _in_block(one: Allocation, buffers: dict[int, Buffer], made: Made) -> dict[int, Life]:
    """The lives of the block's buffers. Whose place is taken by another is no longer live, whatever reads it then."""
    found: dict[int, Life] = {}
    active: list[Life] = []
    compared = 0
    for number, place in sorted(
        one.buffers.items(), key=lambda item: made.get(_maker(buffers, item[0]), (-1, -1))
    ):
        span = made.get(_maker(buffers, number))
        if span is None:
            continue
        compared += len(active)
        if compared > XLA_BUFFER_PAIRS:
            break
        life = Life(*span, *place)
        for other in active:
            if other.offset < life.offset + life.size and life.offset < other.offset + other.size:
                other.end = min(other.end, max(other.begin, life.begin - 1))
        active = [other for other in active if other.end >= life.begin]
        active.append(life)
        found[number] = life
    return found


def _maker(buffers: dict[int, Buffer], number: int) -> int:
    return buffers[number].instruction if number in buffers else -1


def _lives(module: Module) -> Made:
    """For each instruction of the entry computation, when its value is made and when it is read last."""
    makers: dict[int, frozenset[int]] = {}
    lives: dict[int, tuple[int, int]] = {}
    for at, made in enumerate(module.in_order):
        read = frozenset().union(*(makers.get(number, frozenset()) for number in made.operands))
        for number in read:
            lives[number] = (lives[number][0], at)
        lives[made.id] = (at, at)
        makers[made.id] = read if made.opcode in _HANDED_ON else frozenset((made.id,))
    return lives


def _is_temporary(one: Allocation) -> bool:
    return not (one.parameter or one.live_out or one.constant)


_FLAGS = {3: "thread_local", 5: "parameter", 7: "live_out", 12: "constant"}


def _allocation(message: memoryview) -> Allocation:
    made = Allocation()
    for key, value in fields(message, Problems()):
        if key == 9 and not isinstance(value, int):
            place = {inner: found for inner, found in fields(value, Problems()) if isinstance(found, int)}
            if place.get(3, 0) <= XLA_MEMORY_BYTES:
                made.buffers[place.get(1, 0)] = (place.get(2, 0), place.get(3, 0))
        elif key in _FLAGS:
            setattr(made, _FLAGS[key], bool(value))
        elif isinstance(value, int) and key in (1, 2):
            setattr(made, "index" if key == 1 else "size", value)
    return made


def _buffer(message: memoryview) -> Buffer:
    made = Buffer()
    for key, value in fields(message, Problems()):
        if key == 3 and not isinstance(value, int):
            made.instruction = next(
                (
                    found
                    for inner, found in fields(value, Problems())
                    if inner == 4 and isinstance(found, int)
                ),
                0,
            )
        elif isinstance(value, int) and key in (1, 2):
            setattr(made, "id" if key == 1 else "size", value)
    return made
