"""Loops of compiled programs that compute a linear recurrence, turn by turn, which a parallel scan computes for all turns at once.

The new state is an affine function of the old one, element by element: it is multiplied by what does not depend on it, and such
things are added. Running means, discounted sums, diagonal state-space models and cumulative sums are; a recurrent network, whose
state goes through a product or a function that bends, is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import known_trips
from stepscope.analysis.xla.loops import CALLS, WAITS, Flow, body_of, loops_of, root_of
from stepscope.analysis.xla.masks import WHOLE_NUMBERS
from stepscope.analysis.xla.sizes.array_bytes import shape_bytes
from stepscope.analysis.xla.sizes.turn_bytes import turn_bytes
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, CALLS_MOST

# What they return has the elements of what they are given, in another order, type or number at most.
_SAME = frozenset(
    ("copy", "copy-start", "copy-done", "bitcast", "reshape", "transpose", "broadcast", "convert", "reduce-precision", "real", "imag")
)  # fmt: skip
_NESTED = ("while", "conditional")
_MOVING = ("fusion", "copy", "transpose", "broadcast", "dynamic-slice", "dynamic-update-slice")
_GEMM = "gemm"


@dataclass(frozen=True)
class Recurrence:
    """A loop whose state is a linear recurrence.

    `names`: kernels of its turns, as kernels are called; `state` those of them that compute the next state; `instructions`: all of
    them as the program calls them. `bytes`: of the state that one turn leaves. `convolved`: where all turns have the same factor, so
    that a convolution needs no states, the bytes that a turn writes out at least. `held`: instructions outside of the loop that make, copy or read arrays of the states of all turns,
    which such a convolution does without. `trips`: None where the program does not say it. `moved`: bytes that kernels of a turn
    read and write, where the time for all turns at once follows from them.
    """

    names: frozenset[str]
    state: frozenset[str]
    instructions: frozenset[str]
    bytes: int
    convolved: int | None
    held: frozenset[str]
    trips: int | None
    moved: Mapping[str, int]


@dataclass(frozen=True)
class Dependence:
    """How a value depends on parts of the state, each a bit: linearly or in another way; where linearly, after what.

    `added`: something was added to the part on the way, or it to something; `scaled`: it was multiplied, or chosen against another.
    """

    linear: int = 0
    added: int = 0
    scaled: int = 0
    other: int = 0

    @property
    def parts(self) -> int:
        """All parts that it depends on."""
        return self.linear | self.other


_NONE = Dependence()
Value = Dependence | list[Dependence]


@dataclass(frozen=True)
class _State:
    """What a loop carries from turn to turn and cannot know before, as indices of its parts."""

    body: int
    parts: frozenset[int]
    outputs: frozenset[int]
    is_linear: bool
    is_invariant: bool


def recurrences_of(module: Module) -> list[Recurrence]:
    """The linear recurrences among the loops of the program, other than the backward passes of loops that are none.

    The gradient of a loop that bends its state is linear in what comes from the turn after it, but the loop itself must stay.
    """
    states = [(loop, state) for loop in loops_of(module) if (state := _state(module, loop)) is not None]
    bent = {
        (known_trips(loop), loop.shape.parts[index].sizes)
        for loop, state in states
        if not state.is_linear
        for index in state.parts
    }
    return [
        _described(module, loop, state)
        for loop, state in states
        if state.is_linear
        and not any((known_trips(loop), loop.shape.parts[index].sizes) in bent for index in state.parts)
    ]


def _described(module: Module, loop: Instruction, state: _State) -> Recurrence:
    flow, parts = Flow(module), loop.shape.parts
    inside, _ = flow.forward(state.body, {0: [index in state.parts for index in range(len(parts))]})
    needed = flow.backward(state.body, set(state.parts), len(parts))
    kernels = dict(flow.kernels(state.body))
    size = sum(shape_bytes(parts[index]) or 0 for index in state.parts)
    convolved = _written_bytes(loop, state) if state.is_invariant else None
    return Recurrence(
        names=frozenset(one.kernel_name for one in kernels.values()),
        state=frozenset(one.kernel_name for key, one in kernels.items() if key in inside and key in needed),
        instructions=frozenset(one.name for one in kernels.values()),
        bytes=size,
        convolved=convolved,
        held=frozenset(_holding(module, loop, state)) if convolved and convolved < size else frozenset(),
        trips=known_trips(loop),
        moved=dict(_moved(module, kernels)),
    )


def _moved(module: Module, kernels: dict[tuple[int, int], Instruction]) -> Iterator[tuple[str, int]]:
    """Kernels and the bytes that they move in a turn."""
    for (computation, _), one in kernels.items():
        size = turn_bytes(module, one, module.instructions(computation))
        if size is not None:
            yield one.kernel_name, size


def _holding(module: Module, loop: Instruction, state: _State) -> Iterator[str]:
    """Instructions outside of the loop whose result, or what they are given, has the states of all turns."""
    trips = known_trips(loop) or 0
    all_turns = [Counter((trips, *loop.shape.parts[index].sizes)) for index in state.parts]

    def holds(shape: Shape) -> bool:
        return any(sizes <= Counter(array.sizes) for array in shape.arrays() for sizes in all_turns)

    for number in module.bodies:
        beside = {one.id: one.shape for one in module.instructions(number)} if number != state.body else {}
        for one in module.instructions(number) if beside else ():
            given = (beside[operand] for operand in one.operands if operand in beside)
            if one.opcode in _MOVING and any(holds(shape) for shape in (one.shape, *given)):
                yield one.name


def _written_bytes(loop: Instruction, state: _State) -> int | None:
    """The bytes of the smallest array of which each turn fills a row."""
    trips, parts = known_trips(loop), loop.shape.parts
    rows = [
        (shape_bytes(parts[index]) or 0) // trips
        for index in state.outputs
        if trips and parts[index].sizes[:1] == (trips,)
    ]
    return min(rows, default=None)


def _state(module: Module, loop: Instruction) -> _State | None:
    """The state of the loop; None where there is none, or the loop cannot be followed."""
    body, parts = body_of(module, loop), loop.shape.parts
    if body is None:
        return None
    known: set[int] = set()
    changing: set[int] = set()
    made: list[Dependence] = []
    for _ in range(CALLS_DEEPEST):  # what is known makes more known, a part a time at worst
        made = _Turn(module).result(body, [index not in known for index in range(len(parts))])
        if len(made) != len(parts):
            return None
        more = {index for index in range(len(parts)) if index not in known and _is_known(made, parts, index)}
        if not more:
            break
        known |= more
        changing |= {index for index in more if not made[index].linear or _counts(parts[index])}
    rest = [index for index in range(len(parts)) if index not in known]
    needed = reduce(or_, (made[index].parts & ~(1 << index) for index in rest), 0)
    outputs = frozenset(index for index in rest if _is_output(made[index], index, needed))
    state = frozenset(rest) - outputs
    if not state:
        return None
    nests = any(one.opcode in _NESTED for one in module.instructions(body))
    is_linear = not nests and not _bends(made, state)
    if is_linear:  # a factor that changes with the turn comes from what the turns count or pass on
        made = _Turn(module).result(
            body, [index in state or index in changing for index in range(len(parts))]
        )
    return _State(body, state, outputs, is_linear, is_linear and not _bends(made, state))


def _bends(made: Sequence[Dependence], state: Iterable[int]) -> bool:
    """Whether the next state depends on the state in another way than linearly."""
    bits = sum(1 << index for index in state)
    return any(made[index].other & bits for index in state)


def _is_known(made: Sequence[Dependence], parts: Sequence[Shape], index: int) -> bool:
    """Whether what each turn finds there is known before the loop: it stays, counts, or is filled with what is known."""
    one, part = made[index], parts[index]
    if one.other or one.linear & ~(1 << index):
        return False
    return _counts(part) or not one.added | one.scaled


def _counts(part: Shape) -> bool:
    return not part.sizes and part.element in WHOLE_NUMBERS


def _is_output(one: Dependence, index: int, needed: int) -> bool:
    """Whether it is only filled or added up: no other part needs it, and its old value comes without a factor."""
    return not (needed | one.other | one.scaled) >> index & 1


class _Turn:
    """Follows the state through one turn of a loop, into what it calls."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._calls_left = CALLS_MOST

    def result(self, body: int, is_state: Sequence[bool]) -> list[Dependence]:
        """What each part of the result depends on, of those parts of the state; none where the loop cannot be followed."""
        given = [Dependence(linear=1 << index) if is_it else _NONE for index, is_it in enumerate(is_state)]
        made = self._computation(body, [given], 0)
        return made if isinstance(made, list) else []

    def _computation(self, number: int, given: Sequence[Value], depth: int) -> Value:
        instructions = self.module.instructions(number)
        values: dict[int, Value] = {}
        for one in instructions:
            values[one.id] = self._value(one, values, given, depth)
        root = root_of(instructions)
        return values[root.id] if root is not None else _bent(given)

    def _value(self, one: Instruction, values: dict[int, Value], given: Sequence[Value], depth: int) -> Value:
        operands = [values.get(operand, _NONE) for operand in one.operands]
        if one.opcode == "parameter":
            return given[one.parameter] if one.parameter < len(given) else _NONE
        if one.opcode == "tuple":
            return [_whole(each) for each in operands]
        if one.opcode == "get-tuple-element" and operands:
            whole = operands[0]
            return whole[one.index] if isinstance(whole, list) and one.index < len(whole) else _bent(operands)
        if one.opcode in ("optimization-barrier", *WAITS) and len(operands) == 1:
            return operands[0]
        enters = one.opcode in ("fusion", *CALLS) and one.called
        if enters and depth < CALLS_DEEPEST and self._calls_left > 0:
            self._calls_left -= 1
            return self._computation(one.called[0], operands, depth + 1)
        return _array(one, [_whole(each) for each in operands])


def _whole(value: Value) -> Dependence:
    """Of a tuple that is used as one, nothing more is known."""
    return _bent([value]) if isinstance(value, list) else value


def _bent(values: Sequence[Value]) -> Dependence:
    """What depends on the same parts in a way that is not linear, or not known."""
    each = [one for value in values for one in (value if isinstance(value, list) else [value])]
    other = reduce(or_, (one.parts for one in each), 0)
    return Dependence(other=other) if other else _NONE


def _array(one: Instruction, operands: Sequence[Dependence]) -> Dependence:
    """What an instruction that returns an array depends on."""
    if not any(each.parts for each in operands):
        return _NONE
    opcode = one.opcode
    if opcode in _SAME and not _rounds(one):
        return _joined(operands)
    if opcode in ("add", "subtract", "complex", "negate"):
        sum_ = _joined(operands)
        negated = operands[1].linear if opcode == "subtract" else sum_.linear if opcode == "negate" else 0
        return Dependence(sum_.linear, sum_.linear, sum_.scaled | negated, sum_.other)
    if opcode == "multiply" and not all(each.parts for each in operands):
        return _scaled(_joined(operands))
    if opcode == "divide" and not any(each.parts for each in operands[1:]):
        return _scaled(operands[0])
    if opcode == "select" and not operands[0].parts:
        chosen = _joined(operands[1:])
        in_all = operands[1].linear & operands[-1].linear
        return Dependence(chosen.linear, chosen.added, chosen.scaled | chosen.linear & ~in_all, chosen.other)
    if opcode == "dynamic-update-slice" or (opcode == "custom-call" and _GEMM in one.target):
        return _into(one, operands)
    return _bent(operands)


def _into(one: Instruction, operands: Sequence[Dependence]) -> Dependence:
    """What is written into an array, or added to it as a product: the array itself stays as it is."""
    if one.opcode != "custom-call":
        target, *rest = operands
    elif len(operands) > len(("lhs", "rhs")):
        lhs, rhs, target, *rest = operands
        target, rest = (
            Dependence(target.linear, target.linear, target.scaled, target.other),
            [lhs, rhs, *rest],
        )
    else:
        return _bent(operands)
    return Dependence(target.linear, target.added, target.scaled, target.other | _bent(rest).other)


def _joined(operands: Sequence[Dependence]) -> Dependence:
    return Dependence(
        reduce(or_, (each.linear for each in operands), 0),
        reduce(or_, (each.added for each in operands), 0),
        reduce(or_, (each.scaled for each in operands), 0),
        reduce(or_, (each.other for each in operands), 0),
    )


def _scaled(one: Dependence) -> Dependence:
    return Dependence(one.linear, one.added, one.scaled | one.linear, one.other)


def _rounds(one: Instruction) -> bool:
    """Whether it makes whole numbers of what may be none."""
    return one.opcode == "convert" and one.element in WHOLE_NUMBERS
