"""Weights that a training program returns as it was given them, though it computes their gradients.

Their gradient or their part of the update is multiplied by zero, or dropped after the optimizer has made it. The optimizer's state of such weights goes
on from step to step, but no weight ever depends on it. What a program is given and what it returns is matched by the memory that a result
takes from an argument, else by the order of their shapes.
"""

from __future__ import annotations

import re

from stepscope.analysis.xla.arguments import Argument, arguments_of
from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import FORMATS, SILENT
from stepscope.analysis.xla.loops import root_of
from stepscope.analysis.xla.needs import WHOLE, Needs, has_zero_products
from stepscope.analysis.xla.sizes.array_bytes import shape_bytes
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import FROZEN_BY_ARGUMENTS_MOST

_PATH = re.compile(r"((\[[^\]]*\])+)$")
_PASSING = ("copy", "bitcast", "get-tuple-element", "copy-done", "copy-start")


@dataclass(frozen=True)
class FrozenWork:
    """`names` of instructions that only make gradients and optimizer state of `weights`; `shorter`: what is needed of the results of others.

    `scale`: the argument that must be zero for that, or an empty text where the program itself says that it is. No weights are named
    where the gradients themselves are multiplied by zero.
    """

    names: frozenset[str]
    shorter: dict[str, float]
    weights: tuple[str, ...]
    scale: str


class _Step:
    """A training program as one turn of a loop: results that are arguments of the next step."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.arguments = {one.number: one for one in arguments_of(module)}
        root = root_of(module.instructions(module.entry))
        self.root = root if root is not None and root.opcode == "tuple" else None
        self.count = len(self.root.operands) if self.root is not None else 0
        self.carried = self._carried()

    def _carried(self) -> dict[int, int]:
        """For results, by place, the argument of the next step that they are."""
        if self.root is None:
            return {}
        if self.module.aliases:
            return {
                at: number
                for at, number in self.module.aliases.items()
                if at < self.count and number in self.arguments
            }
        found, next_one = {}, 0
        given = [one for one in self.arguments.values() if one.shape.sizes]
        for at, shape in enumerate(self.root.shape.parts):
            match = next((i for i in range(next_one, len(given)) if given[i].shape == shape), None)
            if shape.sizes and match is not None:
                found[at], next_one = given[match].number, match + 1
        return found

    def needs(self, zeros: frozenset[int] | None, always: set[int]) -> tuple[Needs, set[int]]:
        """What `always` wanted results need, and those results that the next steps need for them."""
        needs, wanted = Needs(self.module, zeros), set(always)
        while True:
            given = needs.want(wanted)
            more = wanted | {at for at, number in self.carried.items() if number in given}
            if more == wanted:
                return needs, wanted
            wanted = more


def frozen_weights(module: Module, zeros: frozenset[str] = frozenset()) -> FrozenWork | None:
    """The work for frozen weights; `zeros` are names of arguments, or the last parts of them, that the job holds as the number zero."""
    step = _Step(module)
    if not step.carried:
        return None
    candidates = [one for one in step.arguments.values() if _may_scale(one, zeros)]
    if not candidates and not _of_returned_weights(step)[0] and not has_zero_products(module):
        return None
    returned = set(range(step.count))
    ends = returned - step.carried.keys()
    _, usual = step.needs(None, ends)
    # What only goes on by itself, such as averages of weights, is there for somebody else.
    apart = returned - usual
    facts = (ends | apart, _trainable(step, usual))
    found = _without(step, frozenset(), *facts) or _multiplied_by_zero(step)
    if found is not None:
        return found
    for one in candidates[:FROZEN_BY_ARGUMENTS_MOST]:
        found = _without(step, frozenset((one.number,)), *facts, one.name)
        if found is not None:
            return found
    return None


def _trainable(step: _Step, usual: set[int]) -> set[int]:
    """Results that may be weights: arrays that the next step computes with."""
    shapes = {at: step.arguments[number].shape for at, number in step.carried.items() if at in usual}
    return {at for at, shape in shapes.items() if shape.sizes and shape.element in FORMATS}


def _multiplied_by_zero(step: _Step) -> FrozenWork | None:
    """What the code itself multiplies by zero, whatever it is then used for."""
    needs, baseline = Needs(step.module, frozenset()), Needs(step.module, None)
    for each in (needs, baseline):
        each.want(range(step.count))
    names, shorter = _differences(baseline, needs)
    return FrozenWork(names, shorter, (), "") if names else None


def _may_scale(one: Argument, zeros: frozenset[str]) -> bool:
    """Whether it is a number that the job holds as zero."""
    if one.shape.sizes or one.shape.element not in FORMATS:
        return False
    return any(one.name.endswith(f"['{key}']") or one.name == key for key in zeros)


def _without(
    step: _Step, zeros: frozenset[int], always: set[int], trainable: set[int], scale: str = ""
) -> FrozenWork | None:
    """What goes if these arguments are zero, and with what is zero in the code."""
    dropped, weights = _of_returned_weights(step)
    needs, wanted = step.needs(zeros, always - dropped)
    if len(wanted) == step.count:
        return None
    weights |= _frozen(step, needs, wanted)
    trained = [at for at in wanted & trainable if step.carried[at] not in weights]
    if not weights or not trained:
        return None
    # They need not be returned, either.
    needs = needs.afresh()
    needs.want(at for at in wanted if step.carried.get(at) not in weights)
    baseline = Needs(step.module, None)
    baseline.want(range(step.count))
    names, shorter = _differences(baseline, needs)
    if not names:
        return None
    called = tuple(sorted(step.arguments[number].name for number in weights))
    return FrozenWork(names, shorter, called, scale)


def _of_returned_weights(step: _Step) -> tuple[set[int], set[int]]:
    """Results that are state of weights which are returned as they were given, and these weights; nothing where none is trained."""
    by_id = {one.id: one for one in step.module.instructions(step.module.entry)}
    same = {number for at, number in step.carried.items() if _is_given(step, by_id, at, number)}
    paths = {number: _path(step.arguments[number]) for number in step.carried.values()}
    weights, state = set(), set()
    for at, number in step.carried.items():
        if number in same or not paths[number]:
            continue
        shape = step.arguments[number].shape
        of = {
            each
            for each in same
            if paths[each] and paths[number].endswith(paths[each]) and step.arguments[each].shape == shape
        }
        if of:
            weights |= of
            state.add(at)
    return state, weights


def _path(one: Argument) -> str:
    found = _PATH.search(one.name.removeprefix(one.root))
    return found[1] if found else ""


def _is_given(step: _Step, by_id: dict[int, Instruction], at: int, number: int) -> bool:
    """Whether a result is the argument itself, or a copy of it."""
    one = by_id.get(step.root.operands[at]) if step.root is not None else None
    while one is not None and one.opcode in _PASSING and one.operands:
        one = by_id.get(one.operands[0])
    return one is not None and one.opcode == "parameter" and one.parameter == number


def _frozen(step: _Step, needs: Needs, wanted: set[int]) -> set[int]:
    """The weights whose new values need nothing but the old ones."""
    found = set()
    for at in wanted & step.carried.keys():
        number = step.carried[at]
        if not step.arguments[number].shape.sizes:
            continue
        if needs.afresh().only(at, number):
            found.add(number)
    return found


def _differences(baseline: Needs, needs: Needs) -> tuple[frozenset[str], dict[str, float]]:
    """Instructions that are not needed any more, and the share that is needed of the results of others."""
    gone, shorter = set(), {}
    for (computation, number), parts in baseline.live.items():
        one = baseline.instruction(computation, number)
        if one is None or one.opcode in SILENT:
            continue
        left = needs.live.get((computation, number))
        if not left:
            gone.add(one.name)
        elif one.opcode == "fusion" and WHOLE not in left and left < parts:
            sizes = [shape_bytes(each) or 0 for each in one.shape.parts]
            kept = sum(sizes[part] for part in left if part < len(sizes))
            shorter[one.name] = kept / max(1, sum(sizes))
    return frozenset(gone), shorter
