"""What a compiled program computes from its weights alone: the same in every call, as long as they do not change."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.loops import Flow, body_of
from stepscope.analysis.xla.moving import computes
from stepscope.analysis.xla.repeats.turns import given_to, turned
from stepscope.analysis.xla.same_work import changes, same_work
from stepscope.lazy import dataclass


@dataclass(frozen=True)
class WeightWork:
    """Names of the instructions: those that run once in a call, and those of loops over layers, which also pick the layer's weights.

    `scope` is the function or layer that most of the former are of, if that has a name.
    """

    once: frozenset[str]
    in_loops: frozenset[str]
    scope: str


def weight_work(module: Module, weights: Collection[int], others: Iterable[int]) -> WeightWork:
    """What depends on these weights, and on none of the other arguments."""
    others = list(others)
    found = same_work(module, others, weights)
    touched, _ = Flow(module, changes).forward(module.entry, dict.fromkeys(others, True))
    reached, _ = Flow(module).forward(module.entry, dict.fromkeys(weights, True))
    in_loops: set[str] = set()
    elsewhere: set[str] = set()
    for loop in (one for one in module.instructions(module.entry) if one.opcode == "while"):
        mine, not_mine = _of_loop(module, loop, touched, reached)
        in_loops |= mine
        elsewhere |= not_mine
    return WeightWork(found.names, frozenset(in_loops - elsewhere - found.names), found.scope)


def _of_loop(
    module: Module, loop: Instruction, touched: set[tuple[int, int]], reached: set[tuple[int, int]]
) -> tuple[set[str], set[str]]:
    """Names of the kernels of a loop that compute from weights alone, and of all its others."""
    body, given = body_of(module, loop), given_to(module, module.entry, loop)
    if body is None or given is None:
        return set(), set()
    changed, weighed = (
        turned(flow, body, [(module.entry, number) in places for number in given])
        for flow, places in ((Flow(module, changes), touched), (Flow(module), reached))
    )
    if changed is None or weighed is None:
        return set(), set()
    mine: set[str] = set()
    others: set[str] = set()
    for one in module.instructions(body):
        place = (body, one.id)
        is_mine = place in weighed and place not in changed and computes(module, one)
        (mine if is_mine else others).add(one.name)
    return mine, others
