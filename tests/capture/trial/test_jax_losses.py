"""Where a jitted function returns its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from stepscope.capture.trial.jax_losses import JaxLosses, find_loss


@dataclass(frozen=True)
class Array:
    shape: tuple[int, ...] = ()
    dtype: str = "float32"


LOSS, COUNT, WEIGHTS = Array(), Array(dtype="int32"), Array((4, 4))


class Metrics(NamedTuple):
    accuracy: Array
    train_loss: Array


@pytest.mark.parametrize(
    ("result", "path"),
    [
        (LOSS, ()),
        ((WEIGHTS, LOSS), (1,)),
        (([WEIGHTS, LOSS], (COUNT, WEIGHTS), Array(dtype="bfloat16")), (2,)),
        (((LOSS, {"accuracy": LOSS}), WEIGHTS), (0, 0)),
        (({"w": WEIGHTS}, {"accuracy": LOSS, "loss": LOSS}), (1, "loss")),
        ((WEIGHTS, Metrics(LOSS, LOSS)), (1, "train_loss")),
        ((WEIGHTS, COUNT), None),
        (None, None),
        ([WEIGHTS] * 5_000 + [LOSS], None),
    ],
)
def test_the_place_of_the_loss(result: Any, path: tuple[Any, ...] | None) -> None:
    assert find_loss(result) == path


def test_the_function_that_is_called_most_is_the_step() -> None:
    losses = JaxLosses(3)
    step, evaluate = object(), object()
    for number in range(5):
        losses.hear(step, ({"w": WEIGHTS}, Metrics(LOSS, Array(dtype=f"float{number}"))))
    losses.hear(evaluate, LOSS)
    assert [each.dtype for each in losses.values()] == ["float0", "float1", "float2"]
    assert JaxLosses(3).values() == []
