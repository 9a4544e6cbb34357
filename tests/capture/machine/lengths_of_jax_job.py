"""A job whose batch of ids is on the device when a step ends: python lengths_of_jax_job.py FOLDER HOW. Or NumPy has it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import api

import stepscope


def main() -> None:
    """Three steps in the window; weights, a batch of one sample, numbers of positions and a table of them are no batch of ids."""
    ids = np.zeros((4, 64), np.int32)
    for row, length in enumerate((20, 32, 8, 12)):
        ids[row, :length] = 5
    kept = jnp.ones((4, 64)), jnp.ones((1, 64), jnp.int32), jnp.zeros((4, 64), jnp.int32)
    given = {"table": np.tril(np.ones((64, 64), bool)), "positions": np.tile(np.arange(64), (4, 1))}
    embed = jax.jit(lambda table, batch: table[batch["ids"]].sum())
    how, hooks = sys.argv[2], api._post_hook_state
    heard: list[Any] = []
    if how == "taken":
        hooks.set_global(lambda *each: heard.append(each))
    batch = {"ids": ids, "mask": ids > 0, "one": ids[0], **given}
    embed(kept[0], batch), embed(kept[0], jax.device_put(batch))
    with stepscope.profile(Path(sys.argv[1]), backends=("jax",), telemetry=False) as prof:
        for _ in range(3):
            batch = {"ids": ids, "mask": ids > 0, "one": ids[0], **given}
            if how == "device":
                batch = jax.device_put(batch)
            embed(kept[0], batch).block_until_ready()
            ids[:] = np.roll(ids, 1, axis=0)  # what is looked at is what was given
            prof.step()
    ids[:] = 0
    embed(kept[0], batch).block_until_ready()
    told = {"hook": hooks.get_global() is not None, "heard": len(heard)}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
