"""Matrices that a compiled program factors by LU, to invert them or to solve with them, and what it needs of the result.

Of an inverse, only products with a few columns may be read: a program that returns it, or its diagonal, needs all of it. Of the factors,
triangular solves and what the determinant is made of, at most a vector, are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from stepscope.analysis.xla.factors.definite import Definite
from stepscope.analysis.xla.factors.values import MOVES, Value, Values
from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import SILENT, is_matrix_product
from stepscope.analysis.xla.loops import root_of
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import INVERSE_ROWS_LEAST, MASKED_PROGRAM_MOST

_FACTORS = "getrf"
_SOLVES = re.compile(r"(?i)triangular-?solve|trsm")
_PART = "get-tuple-element"


@dataclass
class Factored:
    """A matrix of `size` rows; `columns` of products with its inverse, 0 where it is not inverted.

    `is_squared`: whether what is multiplied by it from one side is also multiplied from the other, as in a variance: then the factor's
    half of a solve is enough, whose result is squared.

    `lu`: the instructions of the decomposition, `solving` those that apply it to the identity, `around` those of the products, and
    what makes the identity. `solves`: whether other right sides are solved for.
    """

    size: int
    is_definite: bool = False
    solves: bool = False
    columns: int = 0
    is_squared: bool = True
    lu: set[str] = field(default_factory=set)
    solving: set[str] = field(default_factory=set)
    around: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        """Of all instructions."""
        return self.lu | self.solving | self.around


def factored_matrices(module: Module) -> list[Factored]:
    """Those of which all that is read of their factors and inverses is known."""
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return []
    return [
        found
        for computation, messages in module.bodies.items()
        if any(_FACTORS.encode() in message.tobytes() for message in messages)
        for found in _Body(module, computation).factored()
    ]


class _NotKnown(Exception):
    """Something is read that only the whole inverse, or the factors of this decomposition, can give."""


class _Body:
    """A computation: who reads each of its values."""

    def __init__(self, module: Module, computation: int) -> None:
        self.module = module
        self.values = Values(module, computation)
        instructions = module.instructions(computation)
        self.by_id = {one.id: one for one in instructions}
        self.root = root_of(instructions)
        self.users: dict[int, list[Instruction]] = {}
        for one in instructions:
            for operand in dict.fromkeys(one.operands):
                self.users.setdefault(operand, []).append(one)

    def factored(self) -> Iterator[Factored]:
        """The matrices that it factors."""
        for one in self.by_id.values():
            sizes = next(one.shape.arrays(), one.shape).sizes
            is_lu = one.opcode == "custom-call" and _FACTORS in one.target
            if not is_lu or len(sizes) != 2 or sizes[0] != sizes[1] or sizes[0] < INVERSE_ROWS_LEAST:
                continue
            try:
                yield self._follow(one, sizes[0])
            except _NotKnown:
                continue

    def _follow(self, lu: Instruction, size: int) -> Factored:
        found = Factored(size, lu={lu.name})
        solves: list[Instruction] = []
        for part in self._readers(lu):
            if part.opcode != _PART:
                raise _NotKnown
            if part.index == 0:
                solves += self._solves_of(part, found)
            else:
                found.lu.update(self._of_pivots(part))
        for solve in solves:
            self._first_solve(solve, [one.id for one in solves], found)
        matrix = self.values.source(Value((), lu.operands[0])) if lu.operands else None
        found.is_definite = matrix is not None and Definite(self.values, size).is_definite(matrix)
        return found

    def _readers(self, one: Instruction) -> list[Instruction]:
        """What reads a value inside of the computation; nothing outside of it may."""
        if one is self.root:
            raise _NotKnown
        return self.users.get(one.id, [])

    def _solves_of(self, factor: Instruction, found: Factored) -> list[Instruction]:
        """The triangular solves with a factor, which may be masked or transposed before; its diagonal may be read as well."""
        solves: dict[int, Instruction] = {}
        waiting = [factor]
        while waiting:
            one = waiting.pop()
            for user in self._readers(one):
                if _is_solve(user):
                    if user.operands[1:2] == [one.id]:
                        raise _NotKnown
                    solves[user.id] = user
                elif self._is_same(user, one):
                    found.lu.update({user.name} if user.opcode not in SILENT else ())
                    waiting.append(user)
                elif user is self.root or any(each.elements > found.size for each in user.shape.arrays()):
                    raise _NotKnown
        return list(solves.values())

    def _is_same(self, user: Instruction, one: Instruction) -> bool:
        """Whether it is the whole matrix again: in another order, or replaced as a whole if the decomposition failed."""
        others = [self.by_id[each] for each in user.operands if each != one.id and each in self.by_id]
        is_whole = user.opcode in MOVES or user.opcode in ("fusion", "select")
        return (
            is_whole
            and user.shape.elements == one.shape.elements
            and all(each.shape.elements <= 1 for each in others)
        )

    def _of_pivots(self, part: Instruction) -> Iterator[str]:
        """What turns pivots into a permutation."""
        waiting, seen = [part], set()
        while waiting:
            one = waiting.pop()
            for user in self._readers(one):
                if user.id not in seen and user.shape.elements == one.shape.elements and user.rank == 1:
                    seen.add(user.id)
                    waiting.append(user)
                    if user.opcode not in SILENT:
                        yield user.name

    def _first_solve(self, solve: Instruction, solves: list[int], found: Factored) -> None:
        """Two solves follow one another; the first is of the identity or of other right sides, whose solution anybody may read."""
        right = self._plain(solve.operands[1]) if len(solve.operands) > 1 else None
        if right is None:
            raise _NotKnown
        if right.id in solves:
            return
        if not self._is_identity(right, found):
            found.solves = True
            return
        results = [each for each in self._ends(solve) if each.id in solves]
        if len(results) != 1:
            raise _NotKnown
        found.solving.update((solve.name, results[0].name))
        if right.opcode not in SILENT:
            found.around.add(right.name)
        self._products(results[0], found)

    def _plain(self, number: int) -> Instruction | None:
        """The instruction of this computation that makes a value, under whatever name and shape."""
        one = self.by_id.get(number)
        for _ in self.by_id:
            if one is None or not (one.opcode in MOVES or one.opcode == _PART) or not one.operands:
                break
            one = self.by_id.get(one.operands[0])
        return one

    def _ends(self, solve: Instruction) -> list[Instruction]:
        """What reads the result of a solve, behind changes of shape; each must be another solve of it."""
        found, waiting = [], [solve]
        while waiting:
            for user in self._readers(waiting.pop()):
                if user.opcode in MOVES or (user.opcode == _PART and user.index == 0):
                    waiting.append(user)
                elif _is_solve(user):
                    found.append(user)
                elif user.opcode != _PART:
                    raise _NotKnown
        return found

    def _is_identity(self, right: Instruction, found: Factored) -> bool:
        """Whether it is made of nothing but positions and pivots, with a column for each row."""
        if right.shape.elements != found.size * found.size:
            return False
        kernel = (
            self.module.instructions(right.called[0]) if right.opcode == "fusion" and right.called else []
        )
        inside = {one.opcode for one in kernel}
        is_made = right.opcode == "iota" or {"iota", "compare"} <= inside
        given = [self._plain(each) for each in right.operands]
        return is_made and all(one is not None and one.name in found.lu for one in given)

    def _products(self, result: Instruction, found: Factored) -> None:
        """The products with the inverse; it must not be read in another way."""
        waiting = [result]
        while waiting:
            one = waiting.pop()
            for user in self._readers(one):
                if user.opcode in MOVES or (user.opcode == _PART and user.index == 0 and one is result):
                    waiting.append(user)
                elif user.opcode == _PART and one is result:
                    self._readers(user)
                else:
                    found.columns += self._columns(user, one, found)
                    found.around.add(user.name)
        if not found.columns:
            raise _NotKnown

    def _columns(self, user: Instruction, inverse: Instruction, found: Factored) -> int:
        """Of a product with the inverse."""
        if user.operands.count(inverse.id) != 1:
            raise _NotKnown
        if is_matrix_product(user):
            if inverse.id not in user.operands[:2]:
                raise _NotKnown
            side = user.operands[1 - user.operands.index(inverse.id)]
            found.is_squared = found.is_squared and self._is_squared(user, side)
            return self._columns_of(self.by_id.get(side), found.size)
        found.is_squared = False
        return self._columns_inside(user, user.operands.index(inverse.id), found.size)

    def _columns_of(self, side: Instruction | None, size: int) -> int:
        """Of what is multiplied by the inverse; a product itself may be split into parts of sums."""
        if side is None:
            raise _NotKnown
        return max(1, side.shape.elements // size)

    def _is_squared(self, product: Instruction, other: int) -> bool:
        """Whether all that reads a product with the inverse multiplies it by vectors or by what is on the other side already."""
        side = self.values.source(Value((), other))
        readers: list[Instruction] = []
        waiting = [product]
        while waiting:
            for user in self._readers(waiting.pop()):
                if user.opcode in MOVES or (user.opcode == _PART and user.index == 0):
                    waiting.append(user)
                elif user.opcode != _PART:
                    readers.append(user)
        made = self.values.source(Value((), product.id))
        return (
            side is not None
            and made is not None
            and bool(readers)
            and all(self._multiplies(user, made, side) for user in readers)
        )

    def _multiplies(self, user: Instruction, made: Value, side: Value) -> bool:
        """Whether a kernel multiplies the result of a product by a vector, or by the given side of it, and adds up."""
        if is_matrix_product(user):
            read = self.values.read(Value((), user.id))
            return made in read and all(each == made or self._fits(each, side) for each in read)
        if user.opcode != "fusion" or self.values.source(Value((), user.id)) is None:
            return False
        inside = [Value((user.id,), one.id) for one in self.module.instructions(user.called[0])]
        products = [each for each in inside if made in self.values.read(each)]
        return bool(products) and all(
            self.values.one(each).opcode == "multiply"
            and all(one == made or self._fits(one, side) for one in self.values.read(each))
            for each in products
            if self.values.one(each).opcode not in MOVES
        )

    def _fits(self, value: Value, side: Value) -> bool:
        one = self.values.one(value)
        return one.opcode == "broadcast" or self.values.are_same(value, side)

    def _columns_inside(self, user: Instruction, place: int, size: int) -> int:
        """Of a fused kernel that multiplies the inverse by a vector and adds up, or that holds a product."""
        if user.opcode != "fusion" or not user.called or user is self.root:
            raise _NotKnown
        body = {one.id: one for one in self.module.instructions(user.called[0])}
        mine = {one.id for one in body.values() if one.opcode == "parameter" and one.parameter == place}
        columns = 0
        for one in body.values():  # in their order: what is read comes first
            if mine.isdisjoint(one.operands):
                continue
            if one.opcode in MOVES:
                mine.add(one.id)
            elif one.opcode == "dot":
                others = [body.get(each) for each in one.operands if each not in mine]
                columns += self._columns_of(others[0] if others else None, size)
            elif one.opcode == "multiply" and self._is_summed(one, body, mine, size):
                columns += 1
            else:
                raise _NotKnown
        if not columns:
            raise _NotKnown
        return columns

    def _is_summed(self, one: Instruction, body: dict[int, Instruction], mine: set[int], size: int) -> bool:
        """Whether the inverse is multiplied by a vector there, and added up along it."""
        others = [body[each] for each in one.operands if each not in mine]
        readers = [each for each in body.values() if one.id in each.operands]
        if len(others) != 1 or others[0].opcode != "broadcast" or not others[0].operands:
            return False
        source = body.get(others[0].operands[0])
        if source is None or source.shape.elements > size or not readers:
            return False
        return all(each.opcode == "reduce" and each.shape.elements <= size for each in readers)


def _is_solve(one: Instruction) -> bool:
    return one.opcode == "triangular-solve" or (
        one.opcode == "custom-call" and bool(_SOLVES.search(one.target))
    )
