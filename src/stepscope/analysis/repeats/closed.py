"""What a call of a module or a function is given, and what it computes and returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepscope.analysis.repeats.kinds import CUTS, VIEWS
from stepscope.analysis.repeats.op_call import INTEGERS, NUMBERS, Op, OpCall, Tensor
from stepscope.analysis.repeats.results import WEIGHTS, is_random
from stepscope.lazy import dataclass


@dataclass(frozen=True)
class Needs:
    """Elements of the arrays that a call is given: integers, and other numbers, of which `widest` has the most axes.

    `made`: elements of all arrays that are computed in it; `inner`: of those that it computes with. `results`: of those that its
    last op returns.
    """

    integers: frozenset[int]
    numbers: frozenset[int]
    widest: int
    made: frozenset[int]
    inner: frozenset[int]
    results: frozenset[int]

    @property
    def sizes(self) -> frozenset[int]:
        """Of all that it is given."""
        return self.integers | self.numbers

    @property
    def may_be_own(self) -> bool:
        """Whether a call may be given what the one before has returned, as in a loop that keeps a state."""
        return not self.made.isdisjoint(self.numbers) or not self.results.isdisjoint(self.sizes)


def needs_of(calls: Sequence[OpCall], has_own_weights: bool, or_random: bool = False) -> Needs | None:
    """Of the ops that a module or function calls, in their order; None where each call returns something else, or is not understood.

    Weights of ops are what it is given, unless they are its own.
    """
    if not calls or (not or_random and any(is_random(call.op) for call in calls)):
        return None
    known, made, inner = set[int](), set[int](), set[int]()
    integers, numbers = set[int](), set[int]()
    widest, results = 0, frozenset[int]()
    for call in calls:
        for each in _inputs(call.op, has_own_weights):
            if each.size in known or not each.shape or not each.size:
                inner |= {each.size} if each.shape and not is_view(call) else set()
                continue
            integers |= {each.size} if each.kind != NUMBERS else set()
            numbers |= {each.size} if each.kind != INTEGERS else set()
            widest = max(widest, len(each.shape) if each.kind != INTEGERS else 0)
        results = call.sizes or results
        known |= call.sizes or set()
        made |= set() if is_view(call) else call.sizes or set()
    if not results:
        return None
    return Needs(frozenset(integers), frozenset(numbers), widest, frozenset(made), frozenset(inner), results)


def has_unknown_numbers(calls: Sequence[OpCall], own: int | None) -> bool:
    """Whether a call computes with a number that may be another each time, as a time or a rate: its value was not recorded.

    It is an array without axes that no op of the call may have made, or in the code of the call itself, which runs in the module
    `own`, a number of Python: those of the modules inside are their constants.
    """
    made = False
    for call in calls:
        for each in call.op.tensors:
            is_known = bool(each.shape) or each.kind is None or bool(call.op.number_at(each.place))
            if not is_known and (call.home == own if each.of_python else not made):
                return True
        made = made or 1 in (call.sizes or ())
    return False


def _inputs(op: Op, has_own_weights: bool) -> Iterable[Tensor]:
    weights = WEIGHTS.get(op.base, ()) if has_own_weights else ()
    return (each for each in op.tensors if each.place not in weights)


def is_view(call: OpCall) -> bool:
    """Whether it only shows another array, or a part of it, and computes nothing."""
    return call.op.base in VIEWS or call.op.base in CUTS
