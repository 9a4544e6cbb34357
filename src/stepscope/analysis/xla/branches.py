"""Work of a loop whose result is kept or thrown away as a condition says: both branches of it are computed.

That is what a condition of each sample (`lax.cond` under `vmap`) becomes: the loop computes the new state for all samples in every
turn, and then selects it or the old one. A condition of single elements, as of a mask, is none of a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.loops import body_of, loops_of, root_of

_SAME = ("bitcast", "reshape", "slice", "copy", "convert", "transpose")
_GIVEN = ("parameter", "get-tuple-element", "constant")
Body = dict[int, Instruction]


def selected_work(module: Module) -> frozenset[str]:
    """Kernel names of what loops compute only for a value that a condition may throw away for the one before."""
    return frozenset(name for loop in loops_of(module) for name in _of_loop(module, loop))


def _of_loop(module: Module, loop: Instruction) -> Iterator[str]:
    number = body_of(module, loop)
    instructions = module.instructions(number) if number is not None else []
    body = {one.id: one for one in instructions}
    root = root_of(instructions)
    for index, operand in enumerate(root.operands if root is not None else ()):
        found = _new_state(module, body, _through(body, operand), index)
        if found is not None:
            select, new = found
            for one in _only_for(body, new, select):
                yield one.kernel_name
                for called in one.called if one.opcode == "fusion" else ():
                    yield from (each.kernel_name for each in module.instructions(called))


def _new_state(
    module: Module, body: Body, one: Instruction | None, index: int
) -> tuple[Instruction, Instruction] | None:
    """The instruction that selects between this part of the state before and another value, and what that is; None if it is another."""
    if one is None:
        return None
    inner, select = body, one
    if one.opcode == "fusion" and one.called:
        inside = module.instructions(one.called[0])
        inner, root = {each.id: each for each in inside}, root_of(inside)
        if root is None:
            return None
        select = root
    if select.opcode != "select" or not _is_of_samples(inner, select):
        return None
    values = [_outside(body, one, _through(inner, each)) for each in select.operands[1:]]
    old = [each for each in values if each is not None and _is_part(each, index)]
    new = [each for each in values if each is not None and each.opcode not in _GIVEN]
    return (one, new[0]) if len(old) == 1 and len(new) == 1 else None


def _outside(body: Body, one: Instruction, value: Instruction | None) -> Instruction | None:
    """The value among the instructions of the loop, where it is a parameter of the fused kernel `one`."""
    if one.opcode != "fusion" or value is None:
        return _whole(body, value)
    is_given = value.opcode == "parameter" and value.parameter < len(one.operands)
    found = _through(body, one.operands[value.parameter]) if is_given else None
    return _whole(body, found)


def _whole(body: Body, one: Instruction | None) -> Instruction | None:
    """Where it is one of several results of an instruction of the loop, that instruction."""
    if one is None or one.opcode != "get-tuple-element":
        return one
    source = body.get(one.operands[0]) if one.operands else None
    return one if source is None or source.opcode == "parameter" else source


def _is_part(one: Instruction, index: int) -> bool:
    """Whether it is this part of what the loop carries."""
    return one.opcode == "get-tuple-element" and one.index == index


def _is_of_samples(inner: Body, select: Instruction) -> bool:
    """Whether the condition has fewer elements than what it chooses from."""
    condition = _through(inner, select.operands[0]) if select.operands else None
    source = inner.get(condition.operands[0]) if condition is not None and condition.operands else None
    return (
        condition is not None
        and condition.opcode == "broadcast"
        and source is not None
        and source.shape.elements < select.shape.elements
    )


def _through(body: Body, number: int) -> Instruction | None:
    """The instruction that makes the value, whatever its shape and type became."""
    one = body.get(number)
    for _ in range(len(body)):
        if one is None or one.opcode not in _SAME or not one.operands:
            break
        one = body.get(one.operands[0])
    return one


def _only_for(body: Body, new: Instruction, select: Instruction) -> list[Instruction]:
    """The instruction and all that nothing else needs."""
    users: dict[int, list[int]] = {}
    for one in body.values():
        for operand in one.operands:
            users.setdefault(operand, []).append(one.id)
    found: dict[int, Instruction] = {}
    waiting: list[Instruction] = [new]
    while waiting:
        one = waiting.pop()
        if one.id in found or one.opcode in ("parameter", "constant"):
            continue
        if one is new or _is_for(users.get(one.id, ()), found):
            found[one.id] = one
            waiting += [body[each] for each in one.operands if each in body]
    return list(found.values()) if _leads_to(body, users, new, select) else []


def _is_for(users: Sequence[int], found: Body) -> bool:
    return bool(users) and all(each in found for each in users)


def _leads_to(body: Body, users: dict[int, list[int]], new: Instruction, select: Instruction) -> bool:
    """Whether the value, all parts of it, is used by what selects alone."""
    waiting, seen = list(users.get(new.id, ())), set()
    while waiting:
        one = waiting.pop()
        if one == select.id or one in seen:
            continue
        seen.add(one)
        if body[one].opcode not in (*_SAME, "get-tuple-element"):
            return False
        waiting += users.get(one, ())
    return True
