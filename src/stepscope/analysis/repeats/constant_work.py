"""Ops that compute the same in each step of PyTorch: they are given only matrices that stay, and what the step makes of these alone.

A profile does not identify arrays. That a matrix stays is known where the capture has found it after the recording, and nothing in a step
makes an array of its size from anything else, nor writes into it. What comes of it then goes into products with what changes, as that of a
graph's edges does; where a step ends with such a matrix, it may be the state of the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import polars as pl

from stepscope.analysis.compute.classes import are_products
from stepscope.analysis.repeats.closed import is_view
from stepscope.analysis.repeats.kinds import COUNTED, CREATED, CREATED_LIKE, CREATES
from stepscope.analysis.repeats.op_call import OpCall
from stepscope.analysis.repeats.results import is_random
from stepscope.analysis.repeats.step_ops import StepOps, step_ops
from stepscope.lazy import dataclass
from stepscope.trace.trace import Trace

_MAKES = CREATES | COUNTED | CREATED | CREATED_LIKE


@dataclass(frozen=True)
class ConstantWork:
    """`events`: the ops of all steps; `times`: how often each is called in a step, at least; `unsure`: with numbers that were not recorded."""

    events: list[int]
    times: int
    unsure: bool


def find_constant_work(trace: Trace, steps: list[int], side: int) -> ConstantWork | None:
    """Of square matrices of this side, in all these steps; None unless it is the same in all."""
    if len(steps) < 2:  # nothing shows what another step does
        return None
    by_step = [_constant_calls(ops, side) for ops in step_ops(trace, steps).values()]
    signs = [[(call.op.name, call.op.shapes, call.op.inputs) for call in calls] for calls in by_step]
    if not signs[0] or any(each != signs[0] for each in signs):
        return None
    return ConstantWork(
        [call.event for calls in by_step for call in calls],
        min(Counter(signs[0]).values()),
        any(_takes_unknown_number(call) for call in by_step[0]),
    )


def _constant_calls(ops: StepOps, side: int) -> list[OpCall]:
    """In their order, without views; empty where something else may be such a matrix, or the step may keep one."""
    matrix, known, found = side * side, dict[int, bool](), list[OpCall]()
    unused = False
    for call in ops.calls:
        stays = call.event not in ops.learned and _is_constant(call, known, side)
        if _may_change(call, matrix, known, stays):
            return []
        for size in call.sizes or ():
            known[size] = stays
        if stays and not is_view(call):
            found.append(call)
        if any(each.size == matrix for each in call.op.tensors) or matrix in (call.sizes or ()):
            unused = stays
    computes = any(call.op.base not in _MAKES for call in found)
    return found if computes and not unused else []


def _is_constant(call: OpCall, known: Mapping[int, bool], side: int) -> bool:
    """Whether all that it is given stays; the matrix itself, until the step has made one of its size."""
    if call.sizes is None or is_random(call.op):
        return False
    given = [each for each in call.op.tensors if each.shape]
    if not given:
        return call.op.base in _MAKES and bool(call.sizes & {side, side * side})
    return all(
        known.get(each.size, each.shape == (side, side)) for each in call.op.tensors if not each.of_python
    )


def _may_change(call: OpCall, matrix: int, known: Mapping[int, bool], stays: bool) -> bool:
    """Whether it makes an array of that size from what changes, may do so, or writes into the matrix itself."""
    given: Collection[int] = call.op.count_by_size
    if call.sizes is None:
        return matrix in given and not is_product(call)
    if matrix not in call.sizes:
        return False
    return not stays or (call.op.is_in_place and matrix not in known)


def is_product(call: OpCall) -> bool:
    """Whether it multiplies matrices."""
    return bool(are_products(pl.Series([call.op.name]))[0])


def _takes_unknown_number(call: OpCall) -> bool:
    return any(not each.shape and not call.op.number_at(each.place) for each in call.op.tensors)
