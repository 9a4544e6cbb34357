"""What a loop of a compiled program has to do turn by turn, and what it need not.

Work must stay in the loop if it depends on what the turn before has computed, and the next turn depends on it. What does not
depend on the turn before can be done for all turns at once before the loop; what no later turn asks for, after it. Sums and
outputs that are filled turn by turn do not hold work back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from stepscope.analysis.xla.hlo_module import TUPLE, Instruction, Module, read_instruction
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, CALLS_MOST

_KERNELS = ("fusion", "custom-call", "dot", "convolution", "copy", "add", "dynamic-update-slice")
# A sum, or an output that is filled, goes through nothing but these.
_FILLS = ("add", "dynamic-update-slice", "copy", "bitcast", "convert", "reshape", "parameter", "tuple")
# On GPUs, what may run beside other work (a copy of a part, for one) is a computation of its own that is started and waited for.
CALLS = ("call", "async-start")
WAITS = ("async-update", "async-done")
_GEMM = "gemm"
# As jax.checkpoint calls it: computed in the turn that needs it, to save memory.
_RECOMPUTED = "rematted_computation"
_OPCODE = b"\x12\x05while"  # as the file writes it
Taint = bool | list[bool]


@dataclass(frozen=True)
class LoopWork:
    """Kernel names of a loop's body: those that may leave the loop, and those that must stay.

    Of those that may leave, `early` do not depend on the turn before, the others are what no later turn needs. Of these, `sums` add
    to what the turns before have added up, as to the gradient of a weight: one large product needs none of them.
    """

    leaving: frozenset[str]
    staying: frozenset[str]
    early: frozenset[str]
    sums: frozenset[str]


def loop_work(module: Module) -> LoopWork:
    """Over all loops of the program; a kernel of several loops leaves only if it may leave each."""
    leaving: set[str] = set()
    staying: set[str] = set()
    late: set[str] = set()
    sums: set[str] = set()
    for loop in loops_of(module):
        free, bound, after, added = _of_loop(module, loop)
        leaving |= free
        staying |= bound
        late |= after
        sums |= added
    leaving -= staying
    return LoopWork(
        frozenset(leaving), frozenset(staying), frozenset(leaving - late), frozenset(sums & leaving)
    )


def loops_of(module: Module) -> Iterator[Instruction]:
    """The loops; other instructions are not read, of which there may be a hundred thousand."""
    for body in module.bodies.values():
        for message in body:
            if _OPCODE in message.tobytes():
                found = read_instruction(message)
                if found.opcode == "while":
                    yield found


def _of_loop(module: Module, loop: Instruction) -> tuple[set[str], set[str], set[str], set[str]]:
    """Kernels of the loop that may leave, that must stay, that depend on the turn before, and that add up over the turns."""
    body = body_of(module, loop)
    flow, count = Flow(module), len(loop.shape.parts)
    if body is None or not count:
        return set(), set(), set(), set()
    carried, filled = _carried(flow, body, count)
    inside, _ = flow.forward(body, {0: [index in carried for index in range(count)]})
    needed = flow.backward(body, carried, count)
    kernels = dict(flow.kernels(body))
    must = {one.kernel_name for key, one in kernels.items() if key in inside and key in needed}
    must |= {one.kernel_name for one in kernels.values() if _RECOMPUTED in one.op_name}
    dependent = {one.kernel_name for key, one in kernels.items() if key in inside}
    given: dict[int, Taint] = {0: [index in filled for index in range(count)]}
    added, _ = flow.forward(body, given)
    sums = {one.kernel_name for key, one in kernels.items() if key in added and flow.adds(one, added)}
    return {one.kernel_name for one in kernels.values()} - must, must, dependent, sums


def body_of(module: Module, loop: Instruction) -> int | None:
    """The computation that returns what the loop carries; the other one is its condition."""
    for number in loop.called:
        root = root_of(module.instructions(number))
        if root is not None and len(root.operands) == len(loop.shape.parts):
            return number
    return None


def root_of(instructions: Sequence[Instruction]) -> Instruction | None:
    """The instruction that no other uses, the last of them."""
    used = {operand for one in instructions for operand in one.operands}
    free = [one for one in instructions if one.id not in used and one.opcode != "parameter"]
    return free[-1] if free else None


def _carried(flow: Flow, body: int, count: int) -> tuple[set[int], set[int]]:
    """The parts of the loop's state that a turn needs of the one before, other than counters, constants and sums; and the sums."""
    instructions = flow.module.instructions(body)
    by_id = {one.id: one for one in instructions}
    root = root_of(instructions)
    if root is None or root.opcode != "tuple":
        return set(range(count)), set()
    same = {i for i, operand in enumerate(root.operands) if flow.comes_from(by_id, operand, i)}
    parameter = next((one for one in instructions if one.opcode == "parameter"), None)
    parts = parameter.shape.parts if parameter is not None else ()
    counters = {i for i, part in enumerate(parts) if not part.sizes and part.element != TUPLE}
    free = same | counters
    while True:  # a counter that depends on anything else is none
        _, out = flow.forward(body, {0: [i not in free for i in range(count)]})
        wrong = {i for i in counters & free if isinstance(out, list) and out[i] and i not in same}
        if not wrong:
            break
        free -= wrong
    sums = {i for i in range(count) if i not in free and flow.is_filled(body, root, i)}
    return set(range(count)) - free - sums, sums


class Flow:
    """Which instructions depend on which, through calls and tuples."""

    def __init__(self, module: Module, is_source: Callable[[Instruction], bool] = lambda _: False) -> None:
        """`is_source`: whether an instruction is tainted whatever it is given."""
        self.module = module
        self._is_source = is_source
        self._calls_left = CALLS_MOST

    def _enters(self, one: Instruction, depth: int) -> bool:
        """Whether to look into what it calls: a damaged file may call without end."""
        if one.opcode not in CALLS or not one.called or depth >= CALLS_DEEPEST or self._calls_left <= 0:
            return False
        self._calls_left -= 1
        return True

    def forward(
        self, computation: int, given: dict[int, Taint], depth: int = 0
    ) -> tuple[set[tuple[int, int]], Taint]:
        """The instructions that depend on tainted parameters, and whether the result does."""
        taint: dict[int, Taint] = {}
        found: set[tuple[int, int]] = set()
        for one in self.module.instructions(computation):
            taint[one.id] = self._taint(one, taint, given, found, depth)
            if _any(taint[one.id]):
                found.add((computation, one.id))
        root = root_of(self.module.instructions(computation))
        return found, taint[root.id] if root is not None else any(_any(each) for each in given.values())

    def _taint(
        self,
        one: Instruction,
        taint: dict[int, Taint],
        given: dict[int, Taint],
        found: set[tuple[int, int]],
        depth: int,
    ) -> Taint:
        operands = [taint.get(operand, False) for operand in one.operands]
        if self._is_source(one):
            return True
        if one.opcode == "parameter":
            return given.get(one.parameter, False)
        if one.opcode == "get-tuple-element" and operands:
            whole = operands[0]
            return whole[one.index] if isinstance(whole, list) and one.index < len(whole) else _any(whole)
        if one.opcode == "tuple":
            return [_any(each) for each in operands]
        if one.opcode in WAITS and operands:
            return operands[0]
        if self._enters(one, depth):
            inner, out = self.forward(one.called[0], dict(enumerate(operands)), depth + 1)
            found |= inner
            return out
        return any(_any(each) for each in operands)

    def backward(self, body: int, carried: set[int], count: int) -> set[tuple[int, int]]:
        """The instructions that the carried parts of the result need."""
        return self._needed(body, [index in carried for index in range(count)], 0)[0]

    def _needed(
        self, computation: int, wanted: Sequence[bool], depth: int
    ) -> tuple[set[tuple[int, int]], set[int]]:
        """The instructions that the wanted parts of the result need, and the parameters."""
        instructions = self.module.instructions(computation)
        by_id = {one.id: one for one in instructions}
        root = root_of(instructions)
        found: set[tuple[int, int]] = set()
        parameters: set[int] = set()
        if root is None:
            return found, parameters
        is_tuple = root.opcode == "tuple" and len(wanted) == len(root.operands)
        start = [o for o, want in zip(root.operands, wanted, strict=True) if want] if is_tuple else [root.id]
        open_ = list(start) if is_tuple or any(wanted) else []
        while open_:
            number = open_.pop()
            one = by_id.get(number)
            if one is None or (computation, number) in found:
                continue
            found.add((computation, number))
            if one.opcode == "parameter":
                parameters.add(one.parameter)
            elif self._enters(one, depth):
                inner, needs = self._needed(one.called[0], self._all_wanted(one), depth + 1)
                found |= inner
                open_ += [o for place, o in enumerate(one.operands) if place in needs]
            else:
                open_ += one.operands
        return found, parameters

    @staticmethod
    def _all_wanted(one: Instruction) -> list[bool]:
        return [True] * max(1, len(one.shape.parts))

    def comes_from(self, by_id: dict[int, Instruction], number: int, index: int) -> bool:
        """Whether a part of the result is that part of what the body was given."""
        one = by_id.get(number)
        for _ in range(CALLS_DEEPEST):
            if one is None:
                return False
            if one.opcode == "get-tuple-element":
                whole = by_id.get(one.operands[0]) if one.operands else None
                return one.index == index and whole is not None and whole.opcode == "parameter"
            if one.opcode not in ("copy", "bitcast") or not one.operands:
                return False
            one = by_id.get(one.operands[0])
        return False

    def is_filled(self, body: int, root: Instruction, index: int) -> bool:
        """Whether a part only gets something added or written into, and nothing else of the turn reads it."""
        given = [place == index for place in range(len(root.operands))]
        reached, out = self.forward(body, {0: given})
        if not isinstance(out, list) or any(hit for place, hit in enumerate(out) if place != index):
            return False
        on_the_way = [one for key, one in self.instructions_of(reached) if one.id != root.id]
        return all(self._fills(one, reached) for one in on_the_way)

    def instructions_of(self, keys: Iterable[tuple[int, int]]) -> list[tuple[tuple[int, int], Instruction]]:
        """The instructions of these places."""
        wanted = set(keys)
        computations = {computation for computation, _ in wanted}
        return [
            ((number, one.id), one)
            for number in computations
            for one in self.module.instructions(number)
            if (number, one.id) in wanted
        ]

    def _fills(self, one: Instruction, reached: set[tuple[int, int]]) -> bool:
        if one.opcode in (*_FILLS, *CALLS, *WAITS, "get-tuple-element"):
            return True
        if one.opcode == "custom-call":
            computation = next((number for number, _ in reached if (number, one.id) in reached), -1)
            given = [(computation, operand) in reached for operand in one.operands]
            return _GEMM in one.target and not any(given[:2])  # the third is added to
        return one.opcode == "fusion" and self._fusion_fills(one, reached)

    def adds(self, one: Instruction, reached: set[tuple[int, int]]) -> bool:
        """Whether a kernel adds to what it is given of the state, and does not write it elsewhere."""
        if one.opcode != "fusion":
            return one.opcode == "add"
        opcodes = {each.opcode for each in self._reached_inside(one, reached)}
        return "add" in opcodes and "dynamic-update-slice" not in opcodes

    def _fusion_fills(self, one: Instruction, reached: set[tuple[int, int]]) -> bool:
        """Whether a fused kernel only adds to what it is given of the state, or writes into it."""
        return bool(one.called) and all(each.opcode in _FILLS for each in self._reached_inside(one, reached))

    def _reached_inside(self, one: Instruction, reached: set[tuple[int, int]]) -> list[Instruction]:
        """Of a fused kernel, what depends on the reached ones of its operands."""
        computation = next((number for number, _ in reached if (number, one.id) in reached), -1)
        given: dict[int, Taint] = {
            place: (computation, operand) in reached for place, operand in enumerate(one.operands)
        }
        if not one.called:
            return []
        inside, _ = self.forward(one.called[0], given)
        return [each for _, each in self.instructions_of(inside)]

    def kernels(self, computation: int, depth: int = 0) -> list[tuple[tuple[int, int], Instruction]]:
        """The instructions that run as kernels, also in what is called."""
        found = []
        for one in self.module.instructions(computation):
            if self._enters(one, depth):
                found += self.kernels(one.called[0], depth + 1)
            elif one.opcode in _KERNELS or one.opcode.startswith("all-"):
                found.append(((computation, one.id), one))
        return found


def _any(taint: Taint) -> bool:
    return any(taint) if isinstance(taint, list) else taint
