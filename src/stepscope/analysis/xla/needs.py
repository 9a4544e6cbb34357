"""What the results of a compiled program need, if some of its numbers are zero: a product with zero needs nothing of its other side.

Loops are looked through part by part of their state, and kernels with several results result by result.
"""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.analysis.xla.hlo_module import TUPLE, Instruction, Module
from stepscope.analysis.xla.loops import CALLS, WAITS, body_of, root_of
from stepscope.formats.protobuf import fields
from stepscope.registers.policy.useless_work import CALLS_DEEPEST
from stepscope.trace.problems import Problems

WHOLE = -1
Place = tuple[int, int]
_MULTIPLY = ("multiply", "dot", "convolution", "and")
_SUM = ("add", "subtract", "maximum", "minimum", "or")
# Zero if what they are given first is.
_KEEP_ZERO = (
    "abs", "all-reduce", "bitcast", "bitcast-convert", "broadcast", "convert", "copy", "divide", "gather", "negate",
    "reshape", "reverse", "sign", "slice", "sqrt", "tanh", "transpose", "dynamic-slice",
)  # fmt: skip


class _AnotherNeeded(Exception):
    """An argument is needed that was not expected."""


class Needs:
    """The instructions and arguments that the wanted results need. `zeros`: arguments that are zero; None takes no number for zero."""

    def __init__(self, module: Module, zeros: frozenset[int] | None) -> None:
        self.module = module
        self.live: dict[Place, set[int]] = {}
        self.zeros = zeros
        self._only: int | None = None
        self._given: dict[int, set[Place]] = {}
        self._bodies: dict[int, dict[int, Instruction]] = {}
        self._known: dict[tuple[int, tuple[bool, ...]], dict[int, bool]] = {}
        self._fused: dict[tuple[int, int, tuple[bool, ...]], set[Place]] = {}
        self._of_whole: dict[int, dict[int, bool]] = {}

    def want(self, results: Iterable[int]) -> set[int]:
        """These results of the program are wanted as well: the arguments that all wanted ones need."""
        needed = self._want(self.module.entry, results, 0)
        return {number for number, _ in needed}

    def afresh(self) -> Needs:
        """The same program with the same zeros, of which nothing is wanted yet."""
        made = Needs(self.module, self.zeros)
        made._bodies, made._known, made._fused, made._of_whole = (
            self._bodies,
            self._known,
            self._fused,
            self._of_whole,
        )
        return made

    def only(self, result: int, argument: int) -> bool:
        """Whether a result needs nothing but this argument; the search ends at the first other one. Ask no more of it then."""
        self._only = argument
        try:
            return self.want([result]) == {argument}
        except _AnotherNeeded:
            return False

    def instruction(self, computation: int, number: int) -> Instruction | None:
        """An instruction by its place."""
        return self._body(computation).get(number)

    def _body(self, computation: int) -> dict[int, Instruction]:
        if computation not in self._bodies:
            self._bodies[computation] = {one.id: one for one in self.module.instructions(computation)}
        return self._bodies[computation]

    def _want(self, computation: int, results: Iterable[int], depth: int) -> set[Place]:
        """The parameters that these parts of the result of a computation need, with their parts, and those of earlier calls."""
        body, given = self._body(computation), self._given.setdefault(computation, set())
        root = root_of(self.module.instructions(computation))
        if root is None or depth > CALLS_DEEPEST:
            given |= {(one.parameter, WHOLE) for one in body.values() if one.opcode == "parameter"}
            return given
        zero = self._zeros_of(computation)
        waiting = [(root.id, part) for part in results]
        while waiting:
            number, part = waiting.pop()
            one, seen = body.get(number), self.live.setdefault((computation, number), set())
            if one is None or part in seen or WHOLE in seen:
                continue
            seen.add(part)
            if one.opcode == "parameter":
                given.add((one.parameter, part))
                if self._only not in (None, one.parameter) and computation == self.module.entry:
                    raise _AnotherNeeded
            elif not zero.get(number):
                waiting += self._asks(one, part, zero, depth)
        return given

    def _zeros_of(self, computation: int) -> dict[int, bool]:
        """What is zero in a computation that is not fused; only the program's own arguments are known."""
        if computation not in self._of_whole:
            is_entry = computation == self.module.entry
            parameters = [one for one in self._body(computation).values() if one.opcode == "parameter"]
            count = max((one.parameter for one in parameters), default=-1) + 1
            given = tuple(is_entry and number in (self.zeros or ()) for number in range(count))
            self._of_whole[computation] = self._find_zeros(computation, given, 0)
        return self._of_whole[computation]

    def _asks(self, one: Instruction, part: int, zero: dict[int, bool], depth: int) -> list[Place]:
        """The operands that a part of an instruction needs, with their parts."""
        operands = one.operands
        if one.opcode == "get-tuple-element" and operands:
            return [(operands[0], one.index)]
        if one.opcode == "tuple" and 0 <= part < len(operands):
            return [(operands[part], WHOLE)]
        if one.opcode in WAITS and operands:
            return [(operands[0], part)]
        if one.opcode == "while" and operands:
            return [(operands[0], each) for each in self._turns(one, part, depth)]
        if one.opcode in CALLS and one.called:
            needed = self._want(one.called[0], [part], depth + 1)
            return [(operands[number], each) for number, each in needed if number < len(operands)]
        if one.opcode == "fusion" and one.called:
            flags = tuple(zero.get(operand, False) for operand in operands)
            needed = self._of_fusion(one.called[0], part, flags, depth)
            return [(operands[number], WHOLE) for number, _ in needed if number < len(operands)]
        if one.opcode == "conditional":
            for branch in one.called:
                self._want(branch, [WHOLE], depth + 1)
        return [(operand, WHOLE) for operand in operands if one.opcode not in _SUM or not zero.get(operand)]

    def _turns(self, loop: Instruction, part: int, depth: int) -> set[int]:
        """The parts of a loop's state that one of them needs, over all turns."""
        body, count = body_of(self.module, loop), len(loop.shape.parts)
        wanted = set(range(count)) if part == WHOLE or body is None else {part}
        if body is None:
            return wanted
        for condition in (each for each in loop.called if each != body):
            wanted |= self._parts(self._want(condition, [WHOLE], depth + 1), count)
        while True:
            needed = self._parts(self._want(body, wanted, depth + 1), count) | wanted
            if needed == wanted:
                return wanted
            wanted = needed

    @staticmethod
    def _parts(given: set[Place], count: int) -> set[int]:
        parts = {part for _, part in given}
        return set(range(count)) if WHOLE in parts else parts

    def _of_fusion(self, computation: int, part: int, flags: tuple[bool, ...], depth: int) -> set[Place]:
        """The parameters that a part of the result of a fused computation needs."""
        key = (computation, part, flags)
        if key not in self._fused:
            body, zero = self._body(computation), self._find_zeros(computation, flags, depth)
            root = root_of(self.module.instructions(computation))
            found: set[Place] = set()
            seen: set[Place] = set()
            waiting = [(root.id, part)] if root is not None else []
            if root is None or depth > CALLS_DEEPEST:
                found = {(number, WHOLE) for number in range(len(flags))}
            while waiting:
                place = waiting.pop()
                one = body.get(place[0])
                if one is None or place in seen:
                    continue
                seen.add(place)
                if one.opcode == "parameter":
                    found.add((one.parameter, WHOLE))
                elif not zero.get(one.id):
                    waiting += self._asks(one, place[1], zero, depth + 1)
            self._fused[key] = found
        return self._fused[key]

    def _find_zeros(self, computation: int, flags: tuple[bool, ...], depth: int) -> dict[int, bool]:
        """The instructions that are zero, if these parameters are."""
        if self.zeros is None or depth > CALLS_DEEPEST:
            return {}
        key = (computation, flags)
        if key not in self._known:
            zero: dict[int, bool] = {}
            for one in self.module.instructions(computation):
                if self._is_zero(one, zero, flags, depth):
                    zero[one.id] = True
            self._known[key] = zero
        return self._known[key]

    def _is_zero(self, one: Instruction, zero: dict[int, bool], flags: tuple[bool, ...], depth: int) -> bool:
        operands = one.operands
        if one.opcode == "parameter":
            return one.parameter < len(flags) and flags[one.parameter]
        if one.opcode == "constant":
            return _is_literal_zero(one)
        if one.opcode == "fusion" and one.called and one.shape.element != TUPLE:
            given = tuple(zero.get(operand, False) for operand in operands)
            inside = self._find_zeros(one.called[0], given, depth + 1)
            root = root_of(self.module.instructions(one.called[0]))
            return root is not None and inside.get(root.id, False)
        if not operands:
            return False
        if one.opcode in _MULTIPLY:
            return any(zero.get(operand) for operand in operands)
        if one.opcode in _SUM or one.opcode == "reduce":
            return all(zero.get(operand) for operand in operands)
        if one.opcode == "select":
            return all(zero.get(operand) for operand in operands[1:])
        return one.opcode in _KEEP_ZERO and zero.get(operands[0], False)


def has_zero_products(module: Module) -> bool:
    """Whether the code multiplies by a zero of its own anywhere."""
    for computation in module.bodies:
        zero: set[int] = set()
        for one in module.instructions(computation):
            if one.opcode == "constant" and _is_literal_zero(one):
                zero.add(one.id)
            elif zero and one.operands:
                if one.opcode in _MULTIPLY and not zero.isdisjoint(one.operands):
                    return True
                if one.opcode in _KEEP_ZERO and one.operands[0] in zero:
                    zero.add(one.id)
    return False


def _is_literal_zero(one: Instruction) -> bool:
    """Whether all numbers of a constant are; a large one may have none in the file."""
    if one.literal is None:
        return False
    values = [value for key, value in fields(one.literal, Problems()) if key != 1]  # the shape
    return bool(values) and not any(value if isinstance(value, int) else any(value) for value in values)
