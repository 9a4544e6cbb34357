"""JAX's jobs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.diagnosis.job import Job, Step

Weights = list[jax.Array]


def weights(width: int, depth: int) -> Weights:
    """Small random matrices."""
    keys = jax.random.split(jax.random.PRNGKey(0), depth)
    return [jax.random.normal(key, (width, width)) * 0.02 for key in keys]


def loss(parameters: Weights, batch: jax.Array, precision: Any = None) -> jax.Array:
    """A stack of products."""
    for weight in parameters:
        batch = jax.nn.gelu(jnp.matmul(batch, weight, precision=precision))
    return jnp.mean(batch**2)


def update(parameters: Weights, batch: jax.Array, precision: Any = None) -> Weights:
    """Plain gradient descent."""
    gradients = jax.grad(loss)(parameters, batch, precision)
    return [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)]


def _loop(step: Any, width: int, depth: int, make: Any) -> Step:
    state = {"weights": weights(width, depth)}

    def run(number: int) -> None:
        state["weights"] = step(state["weights"], make(number))

    return run


def _input_step(slow: bool) -> Step:
    generator = np.random.default_rng(0)
    ready = jnp.asarray(generator.standard_normal((2048, 2048), dtype=np.float32))

    def make(_: int) -> jax.Array:
        if not slow:
            return ready
        with jax.profiler.TraceAnnotation("make_batch"):
            return jnp.asarray(generator.standard_normal((2048, 2048)).astype(np.float32))

    return _loop(jax.jit(update), 2048, 4, make)


def _precision_step(fast: bool) -> Step:
    batch = jnp.ones((4096, 4096))
    precision = jax.lax.Precision.DEFAULT if fast else jax.lax.Precision.HIGHEST
    return _loop(jax.jit(lambda p, b: update(p, b, precision)), 4096, 4, lambda _: batch)


def _eager_step(jitted: bool) -> Step:
    batch = jnp.ones((256, 256))
    return _loop(jax.jit(update) if jitted else update, 256, 8, lambda _: batch)


def _shapes_step(changing: bool) -> Step:
    return _loop(jax.jit(update), 512, 4, lambda n: jnp.ones((256 + (8 * (n % 64) if changing else 0), 512)))


def _sync_step(waiting: bool) -> Step:
    batch = jnp.ones((512, 512))
    layer = jax.jit(lambda x, w: jax.nn.gelu(x @ w))
    parameters = weights(512, 64)

    def run(_: int) -> None:
        x = batch
        for weight in parameters:
            x = layer(x, weight)
            if waiting:
                x.block_until_ready()

    return run


def _healthy_step(_: str) -> Step:
    batch = jnp.ones((8192, 4096), dtype=jnp.bfloat16)
    state = {"weights": [w.astype(jnp.bfloat16) for w in weights(4096, 8)]}
    step = jax.jit(update)

    def run(_: int) -> None:
        state["weights"] = step(state["weights"], batch)

    return run


def _pair(build: Any, slow: Any, mended: Any) -> dict[str, Any]:
    return {"slow": lambda: build(slow), "mended": lambda: build(mended)}


JOBS = (
    Job("jax_input", "input-bound", **_pair(_input_step, True, False)),
    Job("jax_fp32_matmul", "fp32-matmul", **_pair(_precision_step, False, True)),
    Job("jax_eager", "launch-bound", **_pair(_eager_step, False, True)),
    Job("jax_shapes", "recompilation", **_pair(_shapes_step, True, False)),
    Job("jax_sync", "device-sync", **_pair(_sync_step, True, False)),
    Job("jax_healthy", "", **_pair(_healthy_step, "", ""), healthy=True),
)
