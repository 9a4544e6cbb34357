"""A job that freezes weights by their learning rate: python frozen_job.py HOW. Prints what the capture sees of it."""

from __future__ import annotations

import json
import sys
from typing import Any

from stepscope.capture.machine import frozen


def jax() -> Any:
    """Learning rates in a dictionary; a list, a counter and a rate of one are no frozen groups."""
    import jax.numpy as jnp

    rates = {"encoder": jnp.float32(0), "head": jnp.float32(1e-3), "step": jnp.int32(0)}
    return [rates, [jnp.float32(0)]]


def jax_two() -> Any:
    """Two optimizers, of which one is frozen: the name of their rates tells nothing."""
    import jax.numpy as jnp

    return [{"rate": jnp.float32(0)}, {"rate": jnp.float32(1e-3)}]


def torch(rate: float = 0.0, warm_up: bool = False) -> Any:
    """An optimizer with two groups."""
    import torch as framework

    body, head = framework.nn.Linear(4, 3), framework.nn.Linear(3, 2)
    body.bias.requires_grad_(False)
    groups: list[dict[str, Any]] = [{"params": body.parameters(), "lr": rate}, {"params": head.parameters()}]
    if warm_up:
        groups[0]["initial_lr"] = 1e-4
    return framework.optim.SGD(groups, lr=1e-3)


JOBS = {
    "jax": jax,
    "jax_two": jax_two,
    "torch": torch,
    "trained": lambda: torch(1e-4),
    "warm-up": lambda: torch(warm_up=True),
    "two": lambda: [torch(), torch()],
}

if __name__ == "__main__":
    job: Any = JOBS[sys.argv[1]]
    kept = job()
    sys.stdout.write(json.dumps({"found": frozen.look(["jax", "torch"])}) + "\n")
    del kept
