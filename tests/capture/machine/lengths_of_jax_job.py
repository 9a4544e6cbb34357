"""A job whose batch of ids is on the device when a step ends: python lengths_of_jax_job.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import stepscope


def main() -> None:
    """Three steps in the window; weights, and a batch of one sample, are no batch of ids."""
    ids = np.zeros((4, 64), np.int32)
    for row, length in enumerate((20, 32, 8, 12)):
        ids[row, :length] = 5
    kept = jnp.ones((4, 64)), jnp.ones((1, 64), jnp.int32), jnp.zeros((4, 64), jnp.int32)
    embed = jax.jit(lambda table, batch: table[batch].sum())
    with stepscope.profile(Path(sys.argv[1]), backends=("jax",), telemetry=False) as prof:
        for _ in range(3):
            batch = jax.device_put(ids)
            embed(kept[0], batch).block_until_ready()
            prof.step()
    sys.stdout.write("{}\n")


if __name__ == "__main__":
    main()
