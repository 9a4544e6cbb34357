"""Trains on sentences of many lengths. Each new length is a new shape, which `jax.jit` compiles again."""

import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, WIDTH = 20, 16, 32


def batches(seed=0):
    """Token ids, as long as the longest sentence of the batch."""
    rng = np.random.default_rng(seed)
    for length in rng.permutation(np.arange(20, 20 + STEPS)):
        yield rng.integers(1, 500, (BATCH, int(length)))


def loss_of(weights, tokens):
    known = tokens > 0
    x = weights["embed"][tokens]
    for layer in weights["layers"]:
        x = x + jnp.tanh(x @ layer)
    error = ((x @ weights["embed"].T).max(-1) - 1.0) ** 2
    return jnp.sum(error * known) / jnp.sum(known)


@jax.jit
def train_step(weights, tokens):
    loss, gradient = jax.value_and_grad(loss_of)(weights, tokens)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradient), loss


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {
        "embed": jax.random.normal(keys[0], (500, WIDTH)) * 0.1,
        "layers": [jax.random.normal(key, (WIDTH, WIDTH)) * 0.1 for key in keys[1:]],
    }
    begin = time.perf_counter()
    for step, tokens in enumerate(batches()):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            weights, loss = train_step(weights, tokens)
            loss.block_until_ready()
    seconds = time.perf_counter() - begin
    print(f"{STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e3:.1f} ms each; loss {loss:.3f}")


if __name__ == "__main__":
    main()
