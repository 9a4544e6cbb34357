"""What a compiled program computes from arguments that are the same in several calls, and from nothing that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.loops import CALLS, Flow
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.tables import XLA_CALL_DEPTH

# What gives something else in each call: numbers of the device, data from outside, and what Python computes.
_CHANGING = ("rng", "rng-get-and-update-state", "infeed", "recv", "recv-done", "partition-id", "replica-id")
_CALLBACK = "callback"
_GIVEN = ("parameter", "constant")
_ENTERED = ("while", "conditional")
# Parts of an op's path that control flow and transformations add.
_UNNAMED = (
    "while",
    "body",
    "cond",
    "closed_call",
    "checkpoint",
    "eval_jaxpr",
    "remat",
    "branch_0_fun",
    "branch_1_fun",
)
Place = tuple[int, int]


@dataclass(frozen=True)
class SameWork:
    """`names` of the instructions, those of their loops included, and the function or layer that most of them are of, if that has a name."""

    names: frozenset[str]
    scope: str


def same_work(module: Module, changing: Iterable[int], same: Iterable[int]) -> SameWork:
    """The instructions that depend on an argument of `same`, and on none that changes; with what only these need.

    A loop counts as a whole: where its state changes from call to call, so does all that is inside it.
    """
    flow = Flow(module, changes)
    touched, _ = flow.forward(module.entry, dict.fromkeys(changing, True))
    reached, _ = Flow(module).forward(module.entry, dict.fromkeys(same, True))
    mine = reached - touched
    mine |= _only_for(module.instructions(module.entry), module.entry, mine, touched)
    found = _with_loops(module, mine)
    others = _with_loops(module, touched)
    names = {name for name in found if name not in others}
    return SameWork(frozenset(names), _scope([one for name, one in found.items() if name in names]))


def changes(one: Instruction) -> bool:
    """Whether it gives something else in each call."""
    return one.opcode in _CHANGING or (one.opcode == "custom-call" and _CALLBACK in one.target)


def _only_for(
    instructions: list[Instruction], computation: int, mine: set[Place], touched: set[Place]
) -> set[Place]:
    """What is computed from weights alone, as another type of them, and used by nothing else than these instructions."""
    needed = {number for where, number in mine if where == computation}
    users: dict[int, list[int]] = {}
    for one in instructions:
        for operand in one.operands:
            users.setdefault(operand, []).append(one.id)
    found: set[Place] = set()
    for one in reversed(instructions):
        place = (computation, one.id)
        if one.opcode in _GIVEN or place in touched or place in mine or one.id not in users:
            continue
        if all(user in needed for user in users[one.id]):
            needed.add(one.id)
            found.add(place)
    return found


def _with_loops(module: Module, places: set[Place]) -> dict[str, Instruction]:
    """The instructions of these places by their names, and those of the loops and branches among them."""
    found: dict[str, Instruction] = {}
    for computation in sorted({where for where, _ in places}):
        for one in module.instructions(computation):
            if (computation, one.id) in places and one.opcode not in (*_GIVEN, *CALLS):
                found[one.name] = one
                if one.opcode in _ENTERED:
                    found |= _inside(module, one)
    return found


def _inside(module: Module, loop: Instruction) -> dict[str, Instruction]:
    """All instructions of a loop or branch, in loops and calls inside it as well; what is fused has no kernel of its own."""
    found: dict[str, Instruction] = {}
    seen: set[int] = set()
    waiting = [(number, 0) for number in loop.called]
    while waiting:
        number, depth = waiting.pop()
        if number in seen or depth > XLA_CALL_DEPTH:
            continue
        seen.add(number)
        for one in module.instructions(number):
            found[one.name] = one
            if one.opcode in (*_ENTERED, *CALLS):
                waiting += [(each, depth + 1) for each in one.called]
    return found


def _scope(instructions: list[Instruction]) -> str:
    """The outermost name that most of the instructions have in their paths, behind the program's own."""
    paths = [one.op_name.split("/")[1:-1] for one in instructions if "/" in one.op_name]
    firsts = Counter(next((each for each in path if each not in _UNNAMED), "") for path in paths)
    name, count = firsts.most_common(1)[0] if firsts else ("", 0)
    return name.removeprefix("jit(").removesuffix(")") if count > MAJORITY * len(paths) else ""
