"""Shapes of attention scores: batches of square tables, and what two batches of matrices make."""

from __future__ import annotations

import json
import math

from stepscope.registers.policy.device_findings import SCORES_LENGTH

BATCHED = 3  # sides of a batch of matrices


def made_sizes(shapes: list[list[int]]) -> set[int]:
    """How many elements the product of two batches of matrices may have, whichever sides it sums over."""
    if len(shapes) != 2 or min(map(len, shapes)) < BATCHED or shapes[0][:-2] != shapes[1][:-2]:
        return set()
    batch, (one, other) = math.prod(shapes[0][:-2]), (shape[-2:] for shape in shapes)
    return {
        batch * math.prod(one) * math.prod(other) // (side * side) for side in set(one) & set(other) if side
    }


def is_square(shape: list[int]) -> bool:
    return len(shape) >= BATCHED and shape[-1] == shape[-2] >= SCORES_LENGTH


def shapes_of_text(text: str) -> list[list[int]]:
    """The shapes of an op's inputs that are tensors of numbers known."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    if not isinstance(found, list):
        return []
    return [
        shape
        for shape in found
        if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape)
    ]


def count_elements(shape: list[int]) -> int:
    return math.prod(shape)
