"""JAX's jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.diagnosis.job import Job, Step

Weights = list[jax.Array]


def weights(width: int, depth: int, dtype: Any = jnp.float32) -> Weights:
    """Small random matrices."""
    keys = jax.random.split(jax.random.PRNGKey(0), depth)
    return [(jax.random.normal(key, (width, width)) * 0.02).astype(dtype) for key in keys]


def loss(parameters: Weights, batch: jax.Array, precision: Any = None) -> jax.Array:
    """A stack of products."""
    for weight in parameters:
        batch = jax.nn.gelu(jnp.matmul(batch, weight, precision=precision))
    return jnp.mean(jnp.square(batch.astype(jnp.float32)))


def update(parameters: Weights, batch: jax.Array, precision: Any = None) -> Weights:
    """Plain gradient descent."""
    gradients = jax.grad(loss)(parameters, batch, precision)
    return [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)]


def _loop(step: Any, start: Any, make: Callable[[int], Any]) -> Step:
    state = {"weights": start}

    def run(number: int) -> None:
        state["weights"] = step(state["weights"], make(number))

    return run


def _busy(make: Callable[[int], Any]) -> Step:
    return _loop(jax.jit(update), weights(4096, 4, jnp.bfloat16), make)


def _input_step(slow: bool) -> Step:
    generator = np.random.default_rng(0)
    ready = jnp.asarray(generator.standard_normal((8192, 4096), dtype=np.float32)).astype(jnp.bfloat16)
    widen = jax.jit(lambda x: jnp.tile(x, (8, 1)).astype(jnp.bfloat16))

    def make(_: int) -> jax.Array:
        if not slow:
            return ready
        with jax.profiler.TraceAnnotation("make_batch"):
            batch = jax.device_put(generator.standard_normal((1024, 4096), dtype=np.float32))
        return widen(batch)

    return _busy(make)


def _metrics_step(on: bool) -> Step:
    batch = jnp.ones((8192, 4096), jnp.bfloat16)
    inner = _busy(lambda _: batch)

    def run(number: int) -> None:
        inner(number)
        if on:
            with jax.profiler.TraceAnnotation("compute_metrics"):
                sum(float(i) ** 0.5 for i in range(60_000))

    return run


def _precision_step(fast: bool) -> Step:
    batch = jnp.ones((4096, 4096))
    precision = jax.lax.Precision.DEFAULT if fast else jax.lax.Precision.HIGHEST
    return _loop(jax.jit(lambda p, b: update(p, b, precision)), weights(4096, 4), lambda _: batch)


def _eager_step(jitted: bool) -> Step:
    batch = jnp.ones((2048, 2048))
    return _loop(jax.jit(update) if jitted else update, weights(2048, 4), lambda _: batch)


def _shapes_step(changing: bool) -> Step:
    batches = [
        jnp.ones((8192 + (64 * number if changing else 0), 4096), jnp.bfloat16) for number in range(60)
    ]
    return _busy(lambda number: batches[number % 60])


def _sync_step(waiting: bool) -> Step:
    batch = jnp.ones((4096, 4096), jnp.bfloat16)
    layer = jax.jit(lambda x, w: jax.nn.gelu(x @ w))
    parameters = weights(4096, 16, jnp.bfloat16)

    def run(_: int) -> None:
        x = batch
        for weight in parameters:
            x = layer(x, weight)
            if waiting:
                x.block_until_ready()

    return run


def _attention(q: jax.Array, is_fused: bool) -> jax.Array:
    if is_fused:
        return jax.nn.dot_product_attention(q, q, q, implementation="cudnn")
    scores = jnp.einsum("bthd,bshd->bhts", q, q) / 8
    shares = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(q.dtype)
    return jnp.einsum("bhts,bshd->bthd", shares, q)


def _attention_step(is_fused: bool) -> Step:
    batch = jnp.ones((8, 2048, 1024), jnp.bfloat16)

    def losses(parameters: Weights, x: jax.Array) -> jax.Array:
        for weight in parameters:
            q = (x @ weight).reshape(8, 2048, 16, 64)
            x = _attention(q, is_fused).reshape(8, 2048, 1024)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def train(parameters: Weights, x: jax.Array) -> Weights:
        gradients = jax.grad(losses)(parameters, x)
        return [p - (0.1 * g).astype(p.dtype) for p, g in zip(parameters, gradients, strict=True)]

    return _loop(jax.jit(train), weights(1024, 4, jnp.bfloat16), lambda _: batch)


def _convolution_step() -> Step:
    kernels = [jnp.full((3, 3, 256, 256), 0.001, jnp.bfloat16) for _ in range(4)]
    batch = jnp.ones((128, 32, 32, 256), jnp.bfloat16)

    def losses(parameters: Weights, x: jax.Array) -> jax.Array:
        for kernel in parameters:
            layout = ("NHWC", "HWIO", "NHWC")
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout))
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def train(parameters: Weights, x: jax.Array) -> Weights:
        gradients = jax.grad(losses)(parameters, x)
        return [p - (0.1 * g).astype(p.dtype) for p, g in zip(parameters, gradients, strict=True)]

    return _loop(jax.jit(train), kernels, lambda _: batch)


def _healthy_mlp() -> Step:
    batch = jnp.ones((8192, 4096), jnp.bfloat16)
    return _loop(jax.jit(update), weights(4096, 8, jnp.bfloat16), lambda _: batch)


def _pair(build: Any, slow: Any, mended: Any) -> dict[str, Any]:
    return {"slow": lambda: build(slow), "mended": lambda: build(mended)}


def _healthy(name: str, build: Callable[[], Step]) -> Job:
    return Job(f"jax_healthy_{name}", "", build, build, healthy=True)


JOBS = (
    Job("jax_input", "input-bound", **_pair(_input_step, True, False)),
    Job("jax_metrics", "host-python", **_pair(_metrics_step, True, False)),
    Job("jax_fp32_matmul", "fp32-matmul", **_pair(_precision_step, False, True)),
    Job("jax_eager", "eager-execution", **_pair(_eager_step, False, True), steps=2),
    Job("jax_shapes", "recompilation", **_pair(_shapes_step, True, False), steps=2),
    Job("jax_sync", "device-sync", **_pair(_sync_step, True, False)),
    Job("jax_attention", "unfused-attention", **_pair(_attention_step, False, True)),
    _healthy("mlp", _healthy_mlp),
    _healthy("attention", lambda: _attention_step(True)),
    _healthy("convolutions", _convolution_step),
)
