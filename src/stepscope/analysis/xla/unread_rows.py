"""Matrix products of compiled programs of whose result only a few rows are read.

The result is followed through types, shapes, elementwise ops and fused kernels to all its readers: a slice or a gather of whole rows
reads those rows, anything else reads all of it. What a program returns is followed into the programs that take an array of this type
and shape. Where the compiler has moved the slice before the product itself, the product has no other rows, and there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import ELEMENTWISE, Worker, is_matrix_product
from stepscope.analysis.xla.loops import body_of
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, MASKED_PROGRAM_MOST, UNUSED_ROWS_LEAST

_SAME = ("bitcast", "reshape", "copy", "transpose", "get-tuple-element")
Part = tuple[str, str, str | None]
_PARTS = ("slice", "dynamic-slice", "gather")


@dataclass(frozen=True)
class Unread:
    """A product of which one of `times` rows is read; `product` and `passes` over all its rows as instruction, op and shapes of its operands.

    `program`: which of the programs they are in. Other layers have instructions with the same op and shapes.
    """

    times: int
    product: Part
    passes: frozenset[Part]
    program: int = 0


@dataclass
class _Use:
    """How many elements are read, as which arrays a program returns all of them, and what computes all of them."""

    elements: int = 0
    returned: set[Shape] = field(default_factory=set)
    passes: list[Instruction] = field(default_factory=list)


def unread_rows(modules: Sequence[Module], fetched: int = 0) -> list[Unread]:
    """The products of the programs that ran; `fetched` are the bytes of the largest array that was copied to the host."""
    small = [one for one in modules if sum(len(body) for body in one.bodies.values()) <= MASKED_PROGRAM_MOST]
    if len(small) < len(modules):
        return []  # one that is not looked into may read what another returns
    readers = [_Reader(one) for one in small]
    return [found for at in range(len(readers)) for found in _of_program(at, readers, fetched)]


def _of_program(at: int, readers: Sequence[_Reader], fetched: int) -> Iterator[Unread]:
    program = readers[at]
    worker = Worker(program.module)
    for number in _computations(program.module):
        beside = {one.id: one for one in program.module.instructions(number)}
        for one in beside.values():
            product = _product(program.module, one)
            if product is None:
                continue
            whole = one.shape.elements
            use = program.use(number, one, product)
            read = use.elements + sum(
                whole if fetched >= whole else _read_later(shape, product, readers) for shape in use.returned
            )
            if 0 < read * UNUSED_ROWS_LEAST <= whole:
                works = [(each.name, worker.work(each, beside)) for each in (one, *use.passes)]
                mine, *others = [(name, each.op, each.shapes) for name, each in works]
                yield Unread(whole // read, mine, frozenset(others), at)


def _computations(module: Module) -> list[int]:
    """The program itself and the bodies of its loops."""
    found = [module.entry]
    for number in found:
        bodies = [body_of(module, one) for one in module.instructions(number) if one.opcode == "while"]
        found += [each for each in bodies if each is not None and each not in found]
    return found


def _product(module: Module, one: Instruction) -> Shape | None:
    """The result of a matrix product, or of a fused kernel that is one and what is done with each element."""
    if is_matrix_product(one):
        return next(one.shape.arrays(), None)
    inside = [each for number in one.called[:1] for each in module.instructions(number)]
    products = [each for each in inside if is_matrix_product(each)] if one.opcode == "fusion" else []
    is_one = len(products) == 1 and products[0].shape.elements == one.shape.elements
    return products[0].shape if is_one else None


def _read_later(shape: Shape, product: Shape, readers: Sequence[_Reader]) -> int:
    """How many elements of an array that a program returns the programs read that may take it; all where none does."""
    uses = [
        reader.use(reader.module.entry, one, product)
        for reader in readers
        for one in reader.module.instructions(reader.module.entry)
        if one.opcode == "parameter" and one.shape == shape
    ]
    if not uses or any(use.returned for use in uses):
        return shape.elements
    return max(use.elements for use in uses)


class _Reader:
    """Finds what a program reads of a value."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._users: dict[int, dict[int, list[Instruction]]] = {}

    def use(self, computation: int, value: Instruction, product: Shape, depth: int = 0) -> _Use:
        """What reads the value, of a product with this result."""
        found, whole = _Use(), value.shape.elements
        seen, waiting = {value.id}, [value]
        while waiting:
            one = waiting.pop()
            users = self._of(computation).get(one.id, [])
            if not users:
                found.returned.add(next(one.shape.arrays(), one.shape))
            for user in users:
                if user.id in seen:
                    continue
                if user.opcode == "tuple" and not self._of(computation).get(user.id):
                    found.returned.add(next(one.shape.arrays(), one.shape))
                    continue
                read, goes_on = self._read(user, one, product, whole, depth)
                found.elements += read
                if goes_on:
                    seen.add(user.id)
                    waiting.append(user)
                    if user.opcode not in _SAME:
                        found.passes.append(user)
        if computation != self.module.entry and not depth and found.returned:
            found.elements = whole  # what a loop carries
        return found

    def _read(
        self, user: Instruction, one: Instruction, product: Shape, whole: int, depth: int
    ) -> tuple[int, bool]:
        """How many elements of the value the instruction reads, and whether it makes one of its own for each of them."""
        if user.opcode in _PARTS:
            of_value = user.operands[0] == one.id and one.id not in user.operands[1:]
            return (user.shape.elements if of_value and _has_rows(user.shape, product) else whole), False
        if user.opcode == "get-tuple-element":
            return 0, user.index == 0
        if user.opcode in _SAME or user.opcode in ELEMENTWISE:
            return (0, True) if user.shape.elements == whole else (whole, False)
        if user.opcode == "fusion" and user.called and depth < CALLS_DEEPEST:
            return self._read_inside(user, one, product, whole, depth)
        return whole, False

    def _read_inside(
        self, user: Instruction, one: Instruction, product: Shape, whole: int, depth: int
    ) -> tuple[int, bool]:
        inside = self.module.instructions(user.called[0])
        given = [
            each
            for each in inside
            if each.opcode == "parameter"
            and each.parameter < len(user.operands)
            and user.operands[each.parameter] == one.id
        ]
        uses = [self.use(user.called[0], each, product, depth + 1) for each in given]
        returns = any(use.returned for use in uses)
        if returns and (user.shape.parts or user.shape.elements != whole):
            return whole, False
        return sum(use.elements for use in uses), returns

    def _of(self, computation: int) -> dict[int, list[Instruction]]:
        """Who uses each value of the computation."""
        if computation not in self._users:
            users: dict[int, list[Instruction]] = {}
            for one in self.module.instructions(computation):
                for operand in set(one.operands):
                    users.setdefault(operand, []).append(one)
            self._users[computation] = users
        return self._users[computation]


def _has_rows(part: Shape, product: Shape) -> bool:
    """Whether the part consists of whole rows of the product, or columns: single elements may be any."""
    return any(size in part.sizes for size in product.sizes[-2:] if size > 1)
