"""The same training. Sentences are padded to one of two lengths, so that `jax.jit` compiles twice and no more."""

import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, WIDTH = 20, 16, 32
LENGTHS = (32, 48)


def padded(tokens):
    """The same batch with zeros up to the next of LENGTHS; `loss_of` leaves them out."""
    length = next(length for length in LENGTHS if length >= tokens.shape[1])
    return np.pad(tokens, ((0, 0), (0, length - tokens.shape[1])))


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
            weights, loss = train_step(weights, padded(tokens))
            loss.block_until_ready()
    seconds = time.perf_counter() - begin
    print(f"{STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e3:.1f} ms each; loss {loss:.3f}")


if __name__ == "__main__":
    main()
