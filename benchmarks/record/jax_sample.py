"""Records the JAX profiles that serve as fixtures and for the benchmark. Wants one GPU.

  python jax_sample.py OUT

train: four steps under StepTraceAnnotation, with a host-made batch under TraceAnnotation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


def loss(weights: list[jax.Array], batch: jax.Array) -> jax.Array:
    """A small stack of matrix products in bf16."""
    x = batch.astype(jnp.bfloat16)
    for weight in weights:
        x = jax.nn.gelu(x @ weight.astype(jnp.bfloat16))
    return jnp.mean(x.astype(jnp.float32) ** 2)


@jax.jit
def train_step(weights: list[jax.Array], batch: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """Plain gradient descent."""
    value, gradients = jax.value_and_grad(loss)(weights, batch)
    return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], value


def main(out: Path) -> None:
    """Warm up, then record four steps."""
    weights = [jnp.asarray(np.random.default_rng(i).normal(size=(512, 512)) * 0.02) for i in range(4)]
    make = np.random.default_rng(0)
    for _ in range(2):
        weights, value = train_step(weights, jnp.asarray(make.normal(size=(256, 512)), dtype=jnp.float32))
    jax.block_until_ready(value)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    jax.profiler.start_trace(str(out), profiler_options=options)
    for step in range(4):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            with jax.profiler.TraceAnnotation("make_batch"):
                batch = jnp.asarray(make.normal(size=(256, 512)), dtype=jnp.float32)
            weights, value = train_step(weights, batch)
            jax.block_until_ready(value)
    jax.profiler.stop_trace()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
