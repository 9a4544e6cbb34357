"""Jobs of JAX."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from benchmarks.diff.cpu_jobs.job import Job, Parts, Step, repeat


def _train(
    weights: Any, slopes_of: Callable[[Any, Any], Any], rate: float = 1.0, *, waits: bool = False
) -> Step:
    """A jitted update of the weights; `waits`: for each step."""
    import jax

    def descend(weights: Any, x: Any) -> Any:
        return jax.tree.map(lambda w, g: w - rate * g, weights, slopes_of(weights, x))

    update = jax.jit(descend)
    state = [weights]

    def step(x: Any) -> object:
        state[0] = update(state[0], x)
        return jax.block_until_ready(state[0]) if waits else state[0]

    return step


def _mlp(batch: int) -> Parts:
    """A jitted step of a plain net."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 4)
    sizes = (256, 512, 512, 10)
    weights = [jax.random.normal(key, pair) * 0.05 for key, pair in zip(keys, pairwise(sizes), strict=False)]

    def loss(weights: Any, x: Any) -> Any:
        for each in weights[:-1]:
            x = jnp.tanh(x @ each)
        return jnp.mean(jnp.square(x @ weights[-1]))

    step = _train(weights, jax.grad(loss), 0.01, waits=True)
    return step, repeat(lambda: jax.random.normal(keys[3], (batch, 256)))


def _conv(batch: int) -> Parts:
    """Convolutions, without waiting for each step."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(1)
    kernels = [jax.random.normal(key, (3, 3, inner, outer)) * 0.1 for inner, outer in ((3, 16), (16, 16))]
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(kernels: Any, x: Any) -> Any:
        for each in kernels:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, each, (1, 1), "SAME", dimension_numbers=layout))
        return jnp.mean(x)

    return _train(kernels, jax.grad(loss)), repeat(lambda: jax.random.normal(key, (batch, 24, 24, 3)))


def _scan(batch: int) -> Parts:
    """A recurrence under lax.scan, whose loss is looked at."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(3)
    weights = (jax.random.normal(key, (32, 96)) * 0.1, jax.random.normal(key, (96, 96)) * 0.1)

    def loss(weights: Any, x: Any) -> Any:
        def one(h: Any, each: Any) -> Any:
            h = jnp.tanh(each @ weights[0] + h @ weights[1])
            return h, jnp.mean(h)

        return jnp.mean(jax.lax.scan(one, jnp.zeros((x.shape[1], 96)), x)[1])

    update = jax.jit(jax.value_and_grad(loss))
    state = [weights]

    def step(x: Any) -> object:
        found, slopes = update(state[0], x)
        state[0] = jax.tree.map(lambda w, g: w - 0.1 * g, state[0], slopes)
        return float(found)

    return step, repeat(lambda: jax.random.normal(key, (16, batch, 32)))


def _mixer(batch: int) -> Parts:
    """Dense layers over two axes; nothing waits for a step."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(4)
    weights = [jax.random.normal(key, shape) * 0.1 for shape in ((32, 32), (64, 64))]

    def loss(weights: Any, x: Any) -> Any:
        x = x + jnp.einsum("bsc,st->btc", jax.nn.gelu(x), weights[0])
        return jnp.mean(jnp.square(x + jax.nn.gelu(x) @ weights[1]))

    return _train(weights, jax.grad(loss)), repeat(lambda: jax.random.normal(key, (batch, 32, 64)))


def _vmap(batch: int) -> Parts:
    """Per-sample slopes of a small net; each step is waited for."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(5)
    weights = (jax.random.normal(key, (64, 128)) * 0.1, jax.random.normal(key, (128, 1)) * 0.1)

    def loss(weights: Any, x: Any) -> Any:
        return jnp.square(jnp.sin(x @ weights[0]) @ weights[1])[0]

    per_sample = jax.vmap(jax.grad(loss), (None, 0))

    def slopes_of(weights: Any, x: Any) -> Any:
        return jax.tree.map(lambda g: g.mean(0), per_sample(weights, x))

    step = _train(weights, slopes_of, 0.1, waits=True)
    return step, repeat(lambda: jax.random.normal(key, (batch, 64)))


def _eager(batch: int) -> Parts:
    """Ops one by one, without jit."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(6)
    weights = [jax.random.normal(key, (96, 96)) * 0.1 for _ in range(3)]

    def step(x: Any) -> object:
        for each in weights:
            x = jnp.tanh(x @ each) + x
        return float(jnp.mean(x))

    return step, repeat(lambda: jax.random.normal(key, (batch, 96)))


JOBS: dict[str, tuple[Job, int]] = {
    "jax_mlp": (_mlp, 256),
    "jax_conv": (_conv, 32),
    "jax_scan": (_scan, 32),
    "jax_mixer": (_mixer, 64),
    "jax_vmap": (_vmap, 256),
    "jax_eager": (_eager, 128),
}
