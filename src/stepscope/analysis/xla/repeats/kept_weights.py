"""Which arguments of a compiled program are weights that stay the same from call to call.

A profile has no values, so that this rests on how arguments look: a model is a tree of arrays of several lengths, without whole numbers
but for those that weights are packed into. The fields of a batch have one length, that of the batch, and its labels are whole
numbers. What is copied to the device in the steps, or returned by a program, does not stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stepscope.analysis.xla.arguments import Argument
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.analysis.xla.repeated_calls import Arrivals
from stepscope.registers.policy.repeated_work import MODEL_LEAVES_LEAST


def kept_weights(given: Sequence[Argument], arrivals: Arrivals) -> list[Argument]:
    """The arguments of a program that are leaves of a model, and of which nothing new arrives in the steps."""
    trees: dict[str, list[Argument]] = {}
    for one in given:
        if one.root != one.name:
            trees.setdefault(one.root, []).append(one)
    return [
        leaf
        for leaves in trees.values()
        if is_model(leaves)
        for leaf in leaves
        if leaf.may_be_weight and not leaf.is_small and not arrivals.of(leaf)
    ]


def is_model(leaves: Collection[Argument]) -> bool:
    arrays = [one for one in leaves if not one.is_small]
    lengths = {one.shape.sizes[0] for one in arrays if one.shape.sizes}
    return (
        len(arrays) >= MODEL_LEAVES_LEAST
        and len(lengths) > 1
        and all(one.shape.element in FORMATS for one in arrays)
    )
