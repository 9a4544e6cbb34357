"""JAX: a jitted update, eager ops, a custom op and regions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import stepscope
from tests.capture.jobs.facts import facts, tell

FOLDER = Path(sys.argv[1])
STEPS = stepscope.schedule(skip=4, warmup=2, active=4)
x = jnp.ones((64, 128))
weights = jnp.ones((128, 128))
wide = jnp.ones((800, 800))
PRODUCTS = 6


def loss(w: Any, batch: Any) -> Any:
    with stepscope.annotate("forward"):
        return jnp.sum(jnp.tanh(batch @ w) ** 2)


@jax.jit
def update(w: Any, batch: Any) -> Any:
    return w - 0.01 * jax.grad(loss)(w, batch)


@stepscope.op("my_kernel")
def my_kernel(w: Any) -> Any:
    return jnp.sum(w * 2)


def recorded(name: str, **options: Any) -> stepscope.Profiler:
    w = weights
    with stepscope.profile(FOLDER / name, **options) as prof:
        for batch in prof.input([x] * 16):
            with stepscope.annotate("update"):
                w = update(w, batch)
            my_kernel(w).block_until_ready()
            prof.step()
    return prof


def regions() -> stepscope.Profiler:
    prof = stepscope.Profiler(FOLDER / "regions")
    other = jax.jit(lambda a: jnp.sin(a).sum())
    for _ in range(3):
        other(x).block_until_ready()
        with prof.region("train"):
            update(weights, x).block_until_ready()
    prof.stop()
    return prof


@jax.jit
def predict(batch: Any) -> Any:
    for _ in range(PRODUCTS):
        batch = jnp.tanh(batch @ batch)
    return batch


def dropped() -> stepscope.Profiler:
    """Nobody keeps a result, so that the last step still runs when the window ends."""
    with stepscope.profile(FOLDER / "dropped", schedule=STEPS) as prof:
        for _ in range(16):
            predict(wide)
            prof.step()
    return prof


if __name__ == "__main__":
    tell(
        dropped=facts(dropped()),
        scheduled=facts(recorded("scheduled", schedule=STEPS)),
        plain=facts(recorded("plain")),
        regions=facts(regions()),
        scope="forward" in update.lower(weights, x).as_text(debug_info=True),
    )
