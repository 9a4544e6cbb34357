"""Loops in JAX: with StepTraceAnnotation, with none, with several programs a step, with a compilation inside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH = 2048
Truth = dict[str, Any]


def make_step(layers: int = 8, scan: bool = False) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """A training step as one program, its weights and a batch."""
    import jax
    import jax.numpy as jnp

    weights = [jnp.full((WIDTH, WIDTH), 0.01, jnp.bfloat16) for _ in range(layers)]
    stacked = jnp.stack(weights) if scan else weights
    batch = jnp.ones((512, WIDTH), jnp.bfloat16)

    def loss(w: Any, x: Any) -> Any:
        if scan:
            x, _ = jax.lax.scan(lambda x, layer: (jax.nn.gelu(x @ layer), None), x, w)
        else:
            for layer in w:
                x = jax.nn.gelu(x @ layer)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    @jax.jit
    def train_step(w: Any, x: Any) -> Any:
        gradients = jax.grad(loss)(w, x)
        return jax.tree.map(lambda a, b: a - 0.01 * b, w, gradients)

    return train_step, stacked, batch


def run_loop(folder: Path, count: int, step: Callable[[int], Any]) -> Truth:
    """Record the steps; how many, and how long each."""
    import jax

    jax.profiler.start_trace(str(folder))
    start = time.perf_counter()
    out = None
    for i in range(count):
        out = step(i)
    jax.block_until_ready(out)
    took = (time.perf_counter() - start) * 1e3 / count
    jax.profiler.stop_trace()
    return {"steps": count, "step_ms": took}


def jax_marked(folder: Path) -> Truth:
    import jax

    step, weights, batch = make_step()
    weights = jax.block_until_ready(step(weights, batch))

    def one(i: int) -> Any:
        nonlocal weights
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            weights = step(weights, batch)
        return weights

    return run_loop(folder, 10, one)


def jax_unmarked(folder: Path) -> Truth:
    import jax

    step, weights, batch = make_step()
    weights = jax.block_until_ready(step(weights, batch))

    def one(_: int) -> Any:
        nonlocal weights
        weights = step(weights, batch)
        return weights

    return run_loop(folder, 10, one)


def jax_scan(folder: Path) -> Truth:
    """A loop over layers inside the program is not the loop over steps."""
    import jax

    step, weights, batch = make_step(16, scan=True)
    weights = jax.block_until_ready(step(weights, batch))

    def one(_: int) -> Any:
        nonlocal weights
        weights = step(weights, batch)
        return weights

    return run_loop(folder, 6, one)


def jax_two_programs(folder: Path) -> Truth:
    """Gradients and update are two programs, the batch a third; the loss is read."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    step, weights, _ = make_step()
    measure = jax.jit(lambda w: sum(jnp.sum(layer.astype(jnp.float32)) for layer in w))
    rng = np.random.default_rng(0)
    host = rng.normal(size=(512, WIDTH)).astype("float32")
    scale = jax.jit(lambda x: (x / 2).astype(jnp.bfloat16))
    jax.block_until_ready(measure(step(weights, scale(host))))

    def one(_: int) -> Any:
        nonlocal weights
        weights = step(weights, scale(host))
        return float(measure(weights))

    return run_loop(folder, 7, one)


def jax_compiles_inside(folder: Path) -> Truth:
    """The first call compiles while it is recorded."""
    step, weights, batch = make_step()

    def one(_: int) -> Any:
        nonlocal weights
        weights = step(weights, batch)
        return weights

    return {**run_loop(folder, 8, one), "also": "7 steps without the one that compiles"}


CASES: dict[str, Callable[[Path], Truth]] = {
    "jax_marked": jax_marked,
    "jax_unmarked": jax_unmarked,
    "jax_scan": jax_scan,
    "jax_two_programs": jax_two_programs,
    "jax_compiles_inside": jax_compiles_inside,
}
