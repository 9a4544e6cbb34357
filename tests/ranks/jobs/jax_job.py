"""One of several JAX processes that train together over gloo on CPUs; one of them does more in each step than the others.

python jax_job.py OUT ADDRESS RANK WORLD LATE_RANK HOW
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import stepscope

SLOWER_SECONDS = float(os.environ["SLOWER_SECONDS"])
STEPS = 8
ROWS, WIDTH = 64, 256


def batches(slowly: bool) -> Iterator[np.ndarray]:
    """What this process feeds the loop with: its share of each batch."""
    for number in range(STEPS):
        if slowly:
            time.sleep(SLOWER_SECONDS)
        yield np.full((ROWS, WIDTH), number / STEPS, dtype=np.float32)


def train_step(weights: jax.Array, batch: jax.Array) -> jax.Array:
    """A step of gradient descent; the gradient is summed over all processes, for each has only a part of the batch."""

    def loss(weights: jax.Array) -> jax.Array:
        return jnp.square(jnp.tanh(batch @ weights)).mean()

    return weights - 0.01 * jax.grad(loss)(weights)


def main() -> None:
    """Record five of the steps."""
    out, address, rank, world, late, how = sys.argv[1:7]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=int(world), process_id=int(rank))
    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    step = jax.jit(train_step, in_shardings=(everywhere, split), out_shardings=everywhere)
    weights = multihost_utils.host_local_array_to_global_array(
        np.ones((WIDTH, WIDTH), dtype=np.float32), mesh, PartitionSpec()
    )
    is_late = rank == late
    with stepscope.profile(out, schedule=stepscope.schedule(warmup=2, active=5)) as prof:
        for batch in prof.input(batches(is_late and how == "input")):
            if is_late and how == "python":
                with stepscope.annotate("metrics"):
                    time.sleep(SLOWER_SECONDS)
            whole = jax.make_array_from_process_local_data(split, batch)
            weights = step(weights, whole)
            jax.block_until_ready(weights)
            prof.step()
    multihost_utils.sync_global_devices("done")


if __name__ == "__main__":
    main()
