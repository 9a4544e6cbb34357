"""A small training loop in plain Python, recorded: python examples/plain_training.py FOLDER."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import stepscope

FEATURES, ROWS, STEPS = 24, 600, 16
Sample = tuple[list[float], float]


def load_batches(seed: int = 0) -> Iterator[list[Sample]]:
    """Points and which side of a plane they lie on, made anew for each step: the loop waits for them."""
    generator = random.Random(seed)
    while True:
        points = [[generator.gauss(0, 1) for _ in range(FEATURES)] for _ in range(ROWS)]
        yield [(point, 1.0 if sum(point) > 0 else -1.0) for point in points]


@stepscope.op("gradient")
def gradient(weights: list[float], batch: list[Sample]) -> list[float]:
    """Of the squared error."""
    total = [0.0] * len(weights)
    for point, wanted in batch:
        error = sum(weight * value for weight, value in zip(weights, point, strict=True)) - wanted
        for place, value in enumerate(point):
            total[place] += error * value
    return [value / len(batch) for value in total]


def train(folder: str) -> float:
    """Sixteen steps, of which six are recorded; returns the share of points on the right side."""
    weights = [0.0] * FEATURES
    plan = stepscope.schedule(skip=4, warmup=1, active=6)
    batch: list[Sample] = []
    with stepscope.profile(folder, schedule=plan) as prof:
        for _, batch in zip(range(STEPS), prof.input(load_batches()), strict=False):
            with stepscope.annotate("backward"):
                change = gradient(weights, batch)
            with stepscope.annotate("update"):
                weights = [weight - 0.1 * step for weight, step in zip(weights, change, strict=True)]
            prof.step()
    right = sum(
        wanted * sum(w * v for w, v in zip(weights, point, strict=True)) > 0 for point, wanted in batch
    )
    return right / max(1, len(batch))


if __name__ == "__main__":
    print(f"{train(sys.argv[1]):.0%} on the right side")
