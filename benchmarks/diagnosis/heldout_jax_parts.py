"""What the held-out JAX jobs are built of: parameters as trees of arrays, layers as functions, Adam."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.diagnosis.job import Step

_seeds = itertools.count()


def drawn(*shape: int, scale: float = 1.0, dtype: Any = jnp.float32) -> Any:
    """Random numbers on the device, each time others."""
    return jax.random.normal(jax.random.key(next(_seeds)), shape, dtype) * jnp.asarray(scale, dtype)


def chosen(count: int, *shape: int) -> Any:
    """Random classes or tokens on the device."""
    return jax.random.randint(jax.random.key(next(_seeds)), shape, 0, count)


def weight(*shape: int) -> Any:
    """A weight whose last axis is what comes out."""
    inputs = 1
    for size in shape[:-1]:
        inputs *= size
    return drawn(*shape, scale=inputs**-0.5)


def low(array: Any) -> Any:
    """As bfloat16, to compute with."""
    return array.astype(jnp.bfloat16)


def fresh(params: Any) -> dict[str, Any]:
    """The state of a training that begins."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"params": params, "mean": zeros, "square": jax.tree.map(jnp.zeros_like, params)}


def adam(state: Any, gradients: Any, rate: float = 1e-4) -> dict[str, Any]:
    """One update, without the bias correction."""
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], gradients)
    params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square}


def trained(loss: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A compiled step of training that gives its state's memory to the next one."""

    def train(state: Any, *batch: Any) -> Any:
        return adam(state, jax.grad(loss)(state["params"], *batch))

    return jax.jit(train, donate_argnums=0, **options)


def repeated(train: Callable[..., Any], state: Any, *batch: Any) -> Step:
    """The step on one batch; nobody looks at its results."""

    def step(_: int) -> None:
        nonlocal state
        state = train(state, *batch)

    return step


def dense_layers(*widths: int) -> list[dict[str, Any]]:
    """The parameters of linear layers one after the other."""
    return [{"w": weight(a, b), "b": jnp.zeros(b)} for a, b in itertools.pairwise(widths)]


def dense(params: list[dict[str, Any]], x: Any) -> Any:
    """Linear layers with GELUs between them, in bfloat16."""
    for number, layer in enumerate(params):
        x = low(x) @ low(layer["w"]) + low(layer["b"])
        x = jax.nn.gelu(x) if number + 1 < len(params) else x
    return x


def mixer_layers(length: int, width: int, depth: int) -> list[dict[str, Any]]:
    """The parameters of an MLP-mixer."""
    return [
        {"places": weight(length, length), "up": weight(width, 4 * width), "down": weight(4 * width, width)}
        for _ in range(depth)
    ]


def normalised(x: Any) -> Any:
    """Layer norm without parameters."""
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(-1, keepdims=True)
    return low(wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-5))


def mixer(params: list[dict[str, Any]], x: Any) -> Any:
    """Mixes places, then features, with residuals."""
    for layer in params:
        x = x + jnp.einsum("bld,lm->bmd", normalised(x), low(layer["places"]))
        x = x + jax.nn.gelu(normalised(x) @ low(layer["up"])) @ low(layer["down"])
    return x


def convolved(x: Any, kernel: Any, precision: Any = None) -> Any:
    """A convolution with channels last that keeps the size."""
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision
    )


def crossed(scores: Any, classes: Any) -> Any:
    """Cross-entropy in fp32."""
    chances = jax.nn.log_softmax(scores.astype(jnp.float32))
    return -jnp.take_along_axis(chances, classes[..., None], -1).mean()


def pair(build: Callable[[Any], Step], slow: Any, mended: Any) -> dict[str, Any]:
    """The two variants of a job from one function."""
    return {"slow": lambda: build(slow), "mended": lambda: build(mended)}
