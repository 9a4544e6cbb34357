"""XLA's compiled programs as profiles carry them (HloProto), read as far as they are asked for.

Large programs have a hundred thousand instructions, so computations are kept as bytes until somebody wants them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property, lru_cache

from stepscope.formats.protobuf import Value, fields, text
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import PROGRAMS_KEPT, XLA_CALL_DEPTH
from stepscope.trace.problems import Problems

TUPLE = 13
MOST_ELEMENTS = 1 << 63
_LONGEST_VARINT = 10
_MASK = (1 << 64) - 1
_HIGHEST = 2


@dataclass(frozen=True)
class Shape:
    """An array, or a tuple of them."""

    element: int = 0
    sizes: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()

    @property
    def elements(self) -> int:
        """Elements of the array; of a tuple, those of its first part."""
        if self.element == TUPLE:
            return self.parts[0].elements if self.parts else 0
        if 0 in self.sizes:
            return 0
        count = 1
        for size in self.sizes:
            count *= size
            if count > MOST_ELEMENTS:  # no array; a file may list any number of sizes
                return MOST_ELEMENTS
        return count

    def arrays(self) -> Iterator[Shape]:
        """The array itself, or all arrays of the tuple; tuples of tuples are looked through."""
        if self.element == TUPLE:
            for part in self.parts:
                yield from part.arrays()
        else:
            yield self


@dataclass
class Instruction:
    """The fields of an HLO instruction that matter here; messages inside are kept as bytes."""

    id: int = 0
    name: str = ""
    opcode: str = ""
    shape: Shape = field(default_factory=Shape)
    target: str = ""
    op_name: str = ""
    direction: str = ""  # of a comparison
    operands: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    dimensions: list[int] = field(default_factory=list)  # of a broadcast, a transposition, a reduction
    algorithm: int = 0
    highest: bool = False
    groups: int = 1
    batch_groups: int = 1
    parameter: int = 0
    index: int = 0  # of a part of a tuple
    window: memoryview | None = None
    convolution: memoryview | None = None
    contraction: memoryview | None = None
    slices: bytes = b""  # where a part begins and ends, of each dimension
    config: bytes = b""
    literal: memoryview | None = None  # of a constant

    @property
    def element(self) -> int:
        """The element type of an array."""
        return self.shape.element

    @property
    def rank(self) -> int:
        """How many dimensions an array has."""
        return len(self.shape.sizes)

    @property
    def kernel_name(self) -> str:
        """The name as a kernel carries it."""
        return as_kernel(self.name)


def as_kernel(instruction: str) -> str:
    """The name of an instruction as a kernel carries it."""
    return instruction.replace(".", "_").replace("-", "_")


class Module:
    """A program: its computations by number."""

    def __init__(self, hlo: bytes) -> None:
        self.entry = 0
        self.bodies: dict[int, list[memoryview]] = {}
        self._schedule: memoryview | None = None
        self._aliases: memoryview | None = None
        self._buffers: list[memoryview] = []
        self._read: dict[int, list[Instruction]] = {}
        for key, value in fields(memoryview(hlo), Problems()):
            if key == 1 and not isinstance(value, int):
                self._module(value)
            elif key == 3 and not isinstance(value, int):
                self._buffers.append(value)

    def _module(self, message: memoryview) -> None:
        for key, value in fields(message, Problems()):
            if key == 3 and not isinstance(value, int):
                number, body = _computation(value)
                self.bodies[number] = body
            elif key == 6 and isinstance(value, int):
                self.entry = value
            elif key == 7 and not isinstance(value, int):
                self._schedule = value
            elif key == 8 and not isinstance(value, int):
                self._aliases = value

    @cached_property
    def donated(self) -> frozenset[int]:
        """The arguments, by number, whose memory a result takes."""
        return frozenset(self.aliases.values())

    @cached_property
    def aliases(self) -> dict[int, int]:
        """For the results, by their place, the argument whose memory they take."""
        found = {}
        for entry in messages(self._aliases, 1) if self._aliases is not None else ():
            read = dict(fields(entry, Problems()))
            place, number = read.get(1), read.get(2, 0)
            places = numbers(place) if place is not None else []
            if isinstance(number, int):
                found[places[0] if places else 0] = number
        return found

    @property
    def buffers(self) -> memoryview | None:
        """The buffer assignment, a message, where the profile has it."""
        return self._buffers[0] if self._buffers else None

    def instructions(self, computation: int) -> list[Instruction]:
        """The instructions of one computation."""
        found = self._read.get(computation)
        if found is None:
            found = [read_instruction(message) for message in self.bodies.get(computation, ())]
            self._read[computation] = found
        return found

    @cached_property
    def in_order(self) -> list[Instruction]:
        """The entry computation's instructions as they run."""
        return self.scheduled(self.entry)

    def scheduled(self, computation: int) -> list[Instruction]:
        """The instructions of one computation as they run; in the order of the file where there is no schedule."""
        found = self.instructions(computation)
        place = {number: at for at, number in enumerate(self._scheduled(computation))}
        return sorted(found, key=lambda i: place.get(i.id, -1)) if place else found

    def _scheduled(self, computation: int) -> list[int]:
        """Ids in the order of the schedule; none where there is no schedule."""
        for entry in messages(self._schedule, 1) if self._schedule is not None else ():
            found = dict(fields(entry, Problems()))
            sequence = found.get(2)
            if found.get(1) == computation and isinstance(sequence, memoryview):
                return [
                    number
                    for key, value in fields(sequence, Problems())
                    if key == 1
                    for number in numbers(value)
                ]
        return []


@lru_cache(maxsize=PROGRAMS_KEPT)
def read_module(hlo: bytes) -> Module:
    """The program that the bytes are; memory, ops and loops of one are asked for one after the other."""
    return Module(hlo)


def messages(message: memoryview, number: int, problems: Problems | None = None) -> Iterator[memoryview]:
    """The messages inside that have this number; `problems` counts those that break off."""
    for key, value in fields(message, Problems() if problems is None else problems):
        if key == number and not isinstance(value, int):
            yield value


def numbers(value: Value) -> list[int]:
    """A repeated number, packed or alone; of packed ones those before the first that is none."""
    if isinstance(value, int):
        return [value]
    found, current, shift = [], 0, 0
    for byte in value:
        current |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            found.append(current & _MASK)
            current, shift = 0, 0
        elif shift >= 7 * _LONGEST_VARINT:
            break
    return found


def name_of(message: memoryview) -> str:
    """An instruction's name, which is its first field."""
    for key, value in fields(message, Problems()):
        return text(value) if key == 1 else ""
    return ""


def read_instruction(message: memoryview) -> Instruction:
    """The instruction that the bytes are."""
    made = Instruction()
    for key, value in fields(message, Problems()):
        if isinstance(value, int):
            _number(made, key, value)
        elif key in _TEXTS:
            setattr(made, _TEXTS[key], text(value))
        elif key in _MESSAGES:
            setattr(made, _MESSAGES[key], value)
        elif key == 3:
            made.shape = read_shape(value)
        elif key == 7:
            made.op_name = next((text(name) for number, name in fields(value, Problems()) if number == 2), "")
        elif key == 14:
            made.dimensions += numbers(value)
        elif key == 17:
            made.slices += value.tobytes() + b";"
        elif key == 36:
            made.operands += numbers(value)
        elif key == 38:
            made.called += numbers(value)
        elif key == 43:
            made.config = value.tobytes()
        elif key == 51:
            _precision(value, made)
    return made


def read_shape(message: memoryview, depth: int = 0) -> Shape:
    """The shape; of tuples that nest deeper than any compiler lets them, the inner ones are empty."""
    element, sizes, parts = 0, [], []
    for key, value in fields(message, Problems()):
        if key == 2 and isinstance(value, int):
            element = value
        elif key == 3:
            sizes += numbers(value)
        elif key == 4 and not isinstance(value, int) and depth < XLA_CALL_DEPTH:
            parts.append(read_shape(value, depth + 1))
    return Shape(element, tuple(sizes), tuple(parts))


_TEXTS = {1: "name", 2: "opcode", 28: "target", 63: "direction"}
_MESSAGES = {8: "literal", 15: "window", 16: "convolution", 30: "contraction"}
_NUMBERS = {35: "id", 9: "parameter", 13: "index", 50: "groups", 52: "batch_groups"}


def _number(made: Instruction, key: int, value: int) -> None:
    if key in _NUMBERS:
        setattr(made, _NUMBERS[key], value)
    elif key == 14:
        made.dimensions.append(value)
    elif key == 36:
        made.operands.append(value)
    elif key == 38:
        made.called.append(value)


def _precision(message: memoryview, made: Instruction) -> None:
    for key, value in fields(message, Problems()):
        if key == 1:
            made.highest = _HIGHEST in numbers(value) or made.highest
        elif key == 2 and isinstance(value, int):
            made.algorithm = value


def _computation(message: memoryview) -> tuple[int, list[memoryview]]:
    number, body = 0, []
    for key, value in fields(message, Problems()):
        if key == 2 and not isinstance(value, int):
            body.append(value)
        elif key == 5 and isinstance(value, int):
            number = value
    return number, body
