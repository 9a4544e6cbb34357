"""What depends on tainted values in any turn of a loop of a compiled program."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.loops import Flow, Taint
from stepscope.registers.policy.useless_work import CALLS_DEEPEST


def given_to(module: Module, computation: int, loop: Instruction) -> list[int] | None:
    """The instructions of the computation that the loop is given, part by part; None where they are not known."""
    given = next((one for one in module.instructions(computation) if one.id in loop.operands), None)
    if given is None or given.opcode != "tuple" or loop.operands != [given.id]:
        return None
    return given.operands


def turned(flow: Flow, body: int, given: list[bool]) -> set[tuple[int, int]] | None:
    """What depends on tainted parts of the state, in any turn; None where that takes too many turns to find out."""
    for _ in range(CALLS_DEEPEST):
        start: dict[int, Taint] = {0: list(given)}
        found, out = flow.forward(body, start)
        made = out if isinstance(out, list) else [out] * len(given)
        after = [before or now for before, now in zip(given, made, strict=False)]
        if after == given:
            return found
        given = after
    return None
