"""A program that computes the forward pass of another one, which trains: the same products of arrays of the same shapes.

What it returns goes to no training program: a teacher, a target network or a policy of before computes what training needs.
"""

from __future__ import annotations

from collections import Counter

from stepscope.analysis.xla.arguments import arguments_of, results_of
from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import Worker, known_trips
from stepscope.analysis.xla.loops import body_of
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import NEARLY_ALL
from stepscope.registers.policy.repeated_work import (
    FORWARD_OF_TRAINING_LEAST,
    FORWARD_OF_TRAINING_MOST,
    FORWARD_PRODUCTS_LEAST,
    SMALL_ARGUMENT_BYTES,
)
from stepscope.registers.policy.tables import XLA_CALL_DEPTH

_ENTERED = ("while", "call", "async-start")
GRADIENT = b"transpose(jvp"


@dataclass(frozen=True)
class ForwardAgain:
    """`before`: names of the instructions up to the last product; `after`: of those behind it, which work on its result."""

    before: frozenset[str]
    after: frozenset[str]


def forward_again(training: Module, other: Module) -> ForwardAgain | None:
    """None where the other program does not compute a forward pass of the one that trains."""
    given, needed = (Counter(_shapes_given(module)) for module in (other, training))
    if given - needed or any(shape in needed for shape in results_of(other) if _is_large(shape)):
        return None
    mine, theirs = (_products(module, module.entry) for module in (other, training))
    if mine is None or theirs is None:
        return None
    flops, of_training = sum(mine.elements()), sum(theirs.elements())
    common = sum((mine & theirs).elements())
    share = flops / max(1, of_training)
    if (
        mine.total() < FORWARD_PRODUCTS_LEAST
        or common < NEARLY_ALL * flops
        or not FORWARD_OF_TRAINING_LEAST <= share <= FORWARD_OF_TRAINING_MOST
    ):
        return None
    return _around_last_product(other)


def _shapes_given(module: Module) -> list[Shape]:
    return [one.shape for one in arguments_of(module) if not one.is_small]


def _is_large(shape: Shape) -> bool:
    return shape.elements > SMALL_ARGUMENT_BYTES


def _products(module: Module, computation: int, times: int = 1, depth: int = 0) -> Counter[int] | None:
    """The number of products by their FLOPs, those of loops with every turn; None where nothing says how many turns there are."""
    found: Counter[int] = Counter()
    worker = Worker(module)
    beside = {one.id: one for one in module.instructions(computation)}
    for one in beside.values():
        if one.opcode in _ENTERED and depth < XLA_CALL_DEPTH:
            is_loop = one.opcode == "while"
            turns = known_trips(one) if is_loop else 1
            body = body_of(module, one) if is_loop else next(iter(one.called), None)
            inside = (
                _products(module, body, times * (turns or 1), depth + 1) if body is not None else Counter()
            )
            if inside is None or (inside and turns is None):
                return None
            found += inside
        elif worker.product_of(one) is not None:
            found[_flops(worker, one, beside)] += times
    del found[0]
    return found


def _flops(worker: Worker, one: Instruction, beside: dict[int, Instruction]) -> int:
    """Those of the product alone: what is fused with it differs from program to program."""
    product = worker.product_of(one)
    if product is None or product is one:
        return worker.flops(one, beside) or 0
    inside = (
        worker.module.instructions(number)
        for number in one.called
        if any(each is product for each in worker.module.instructions(number))
    )
    return worker.flops(product, {each.id: each for each in next(inside, [])}) or 0


def _around_last_product(module: Module) -> ForwardAgain:
    worker = Worker(module)
    order = module.in_order
    last = max(
        (
            place
            for place, one in enumerate(order)
            if one.opcode == "while" or worker.product_of(one) is not None
        ),
        default=-1,
    )
    after = frozenset(one.name for one in order[last + 1 :])
    every = (one.name for number in module.bodies for one in module.instructions(number))
    return ForwardAgain(frozenset(every) - after, after)
