"""Held-out JAX jobs: written without sight of the diagnosis' rules, so that they test and do not tune it."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.diagnosis.heldout_jax_parts import (
    adam,
    chosen,
    convolved,
    crossed,
    dense,
    dense_layers,
    drawn,
    fresh,
    low,
    mixer,
    mixer_layers,
    normalised,
    pair,
    repeated,
    trained,
    weight,
)
from benchmarks.diagnosis.job import Job, Step

MASK, IGNORED = 256, -1
Batches = Iterator[tuple[Any, Any]]


def masked_in_python(text: bytes, batch: int, length: int) -> Batches:
    """Texts with masked symbols, symbol by symbol."""
    draw = random.Random(0)
    while True:
        tokens, targets = [], []
        for _ in range(batch):
            begin = draw.randrange(len(text) - length)
            row, wanted = [], []
            for symbol in text[begin : begin + length]:
                is_masked = draw.random() < 0.15
                row.append(MASK if is_masked else symbol)
                wanted.append(symbol if is_masked else IGNORED)
            tokens.append(row)
            targets.append(wanted)
        yield np.array(tokens, np.int32), np.array(targets, np.int32)


def masked_in_numpy(text: bytes, batch: int, length: int) -> Batches:
    """Texts with masked symbols, a batch at once."""
    draw = np.random.default_rng(0)
    symbols = np.frombuffer(text, np.uint8).astype(np.int32)
    while True:
        begins = draw.integers(0, len(symbols) - length, (batch, 1))
        tokens = symbols[begins + np.arange(length)]
        is_masked = draw.random(tokens.shape, dtype=np.float32) < 0.15
        yield np.where(is_masked, MASK, tokens), np.where(is_masked, tokens, IGNORED)


def masked_text(
    in_python: bool, *, batch: int = 256, length: int = 256, width: int = 512, depth: int = 4
) -> Step:
    """A mixer that fills in masked text; planted: a generator that loops over symbols."""
    text = np.random.default_rng(1).integers(32, 127, 1 << 20, dtype=np.uint8).tobytes()
    batches = (masked_in_python if in_python else masked_in_numpy)(text, batch, length)
    params = {"table": weight(257, width), "head": weight(width, 256)}
    state = fresh({**params, "layers": mixer_layers(length, width, depth)})

    def loss(params: Any, tokens: Any, targets: Any) -> Any:
        scores = normalised(mixer(params["layers"], low(params["table"])[tokens])) @ low(params["head"])
        chances = jax.nn.log_softmax(scores.astype(jnp.float32))
        wanted = jnp.take_along_axis(chances, jnp.maximum(targets, 0)[..., None], -1)[..., 0]
        return -jnp.where(targets == IGNORED, 0.0, wanted).mean()

    train = trained(loss)

    def step(_: int) -> None:
        nonlocal state
        tokens, targets = next(batches)
        state = train(state, tokens, targets)

    return step


def policy_epochs(look: bool, *, batch: int = 8192, width: int = 1024, parts: int = 12) -> Step:
    """A policy's updates over the parts of a roll-out; planted: each part's metrics become Python's numbers."""
    state = fresh(dense_layers(256, width, width, width, width, 16))
    seen, taken = drawn(parts, batch, 256), chosen(16, parts, batch)
    gains, before = drawn(parts, batch), drawn(parts, batch, scale=0.1) - 3

    def loss(params: Any, seen: Any, taken: Any, gains: Any, before: Any) -> Any:
        chances = jax.nn.log_softmax(dense(params, seen).astype(jnp.float32))
        now = jnp.take_along_axis(chances, taken[:, None], -1)[:, 0]
        ratio = jnp.exp(now - before)
        bounded = jnp.minimum(ratio * gains, jnp.clip(ratio, 0.8, 1.2) * gains).mean()
        entropy = -(jnp.exp(chances) * chances).sum(-1).mean()
        return -bounded - 0.01 * entropy, {"entropy": entropy, "divergence": (before - now).mean()}

    @functools.partial(jax.jit, donate_argnums=0)
    def train(state: Any, *rolled: Any) -> Any:
        (value, metrics), gradients = jax.value_and_grad(loss, has_aux=True)(state["params"], *rolled)
        return adam(state, gradients), {"loss": value, **metrics}

    rolled = [(seen[part], taken[part], gains[part], before[part]) for part in range(parts)]
    log: dict[str, Any] = {}

    def step(_: int) -> None:
        nonlocal state
        for part in rolled:
            state, metrics = train(state, *part)
            log.update({name: float(value) if look else value for name, value in metrics.items()})

    return step


def convolution_precision(
    precision: Any, *, batch: int = 64, side: int = 64, channels: int = 128, depth: int = 3
) -> Step:
    """A residual convolutional net; planted: the highest precision is asked for."""
    blocks = [[weight(3, 3, channels, channels) for _ in range(2)] for _ in range(depth)]
    params = {"stem": weight(3, 3, 3, channels), "blocks": blocks, "head": weight(channels, 100)}
    images, classes = drawn(batch, side, side, 3), chosen(100, batch)

    def loss(params: Any, images: Any, classes: Any) -> Any:
        x = jax.nn.relu(convolved(images, params["stem"], precision))
        for first, second in params["blocks"]:
            x = x + convolved(jax.nn.relu(convolved(x, first, precision)), second, precision)
        return crossed(x.mean((1, 2)) @ params["head"], classes)

    return repeated(trained(loss), fresh(params), images, classes)


def own_target(static: bool, *, batch: int = 32768, width: int = 4096, depth: int = 4) -> Step:
    """Learning from one's own moving average, whose pace changes; planted: each pace is compiled anew."""
    state, target = fresh({"w": weight(depth, width, width)}), {"w": weight(depth, width, width)}
    first, second = drawn(batch, width, dtype=jnp.bfloat16), drawn(batch, width, dtype=jnp.bfloat16)

    def features(params: Any, x: Any) -> Any:
        for number in range(depth):
            x = jax.nn.gelu(x @ low(params["w"][number]))
        return x

    def loss(params: Any, target: Any, first: Any, second: Any) -> Any:
        wanted = lax.stop_gradient(features(target, second))
        return jnp.square((features(params, first) - wanted).astype(jnp.float32)).mean()

    def follow(target: Any, params: Any, pace: Any) -> Any:
        return jax.tree.map(lambda old, new: old + pace * (new - old), target, params)

    train = trained(loss)
    average = jax.jit(follow, donate_argnums=0, static_argnames="pace" if static else ())

    def step(number: int) -> None:
        nonlocal state, target
        state = train(state, target, first, second)
        pace = 0.004 * (math.cos(math.pi * number / 1000) + 1)
        target = average(target, state["params"], pace=pace)

    return step


def recommender_eager(eager: bool, *, batch: int = 16384, rows: int = 100_000, width: int = 4096) -> Step:
    """Embeddings and an MLP; planted: nothing is compiled."""
    params = {"table": weight(rows, 64), "tower": dense_layers(1024, width, width, 8)}
    state = fresh(params)
    clicks, classes = chosen(rows, batch, 16), chosen(8, batch)

    def loss(params: Any, clicks: Any, classes: Any) -> Any:
        known = params["table"][clicks].reshape(len(clicks), -1)
        return crossed(dense(params["tower"], known), classes)

    def train(state: Any, clicks: Any, classes: Any) -> Any:
        return adam(state, jax.grad(loss)(state["params"], clicks, classes))

    return repeated(train if eager else jax.jit(train), state, clicks, classes)


def vae_evaluation(every: int, *, batch: int = 16384, width: int = 4096, parts: int = 8) -> Step:
    """A VAE; planted: it is evaluated on several batches every few steps."""
    params = {
        "into": dense_layers(1024, width, width, 128),
        "out": dense_layers(64, width, width, 1024),
    }
    state = fresh(params)
    images, noise = drawn(batch, 1024), drawn(batch, 64)
    unseen = [drawn(batch, 1024) for _ in range(parts)]

    def loss(params: Any, images: Any, noise: Any) -> Any:
        mean, spread = jnp.split(dense(params["into"], images).astype(jnp.float32), 2, axis=-1)
        made = dense(params["out"], mean + jnp.exp(spread / 2) * noise).astype(jnp.float32)
        apart = (jnp.exp(spread) + mean**2 - 1 - spread).sum(-1).mean() / 2
        return jnp.square(made - images).sum(-1).mean() + apart

    train, evaluate = trained(loss), jax.jit(loss)

    def step(number: int) -> None:
        nonlocal state
        state = train(state, images, noise)
        if number % every == 0:
            losses = [evaluate(state["params"], part, noise) for part in unseen]
            print("evaluated", number, float(sum(losses)) / parts)

    return step


def healthy_mixer(*, batch: int = 256, places: int = 256, width: int = 768, depth: int = 4) -> Step:
    """An MLP-mixer on patches of images, compiled, in bfloat16."""
    params = {
        "patches": weight(768, width),
        "layers": mixer_layers(places, width, depth),
        "head": weight(width, 1000),
    }
    patches, classes = drawn(batch, places, 768, dtype=jnp.bfloat16), chosen(1000, batch)

    def loss(params: Any, patches: Any, classes: Any) -> Any:
        x = normalised(mixer(params["layers"], patches @ low(params["patches"])))
        return crossed(x.mean(1) @ low(params["head"]), classes)

    return repeated(trained(loss), fresh(params), patches, classes)


def healthy_denoiser(*, batch: int = 256, side: int = 64, channels: int = 128, depth: int = 6) -> Step:
    """A convolutional denoiser, compiled, in bfloat16 with channels last; looks at its loss now and then."""
    middle = [weight(3, 3, channels, channels) for _ in range(depth)]
    params = {"enter": weight(3, 3, 4, channels), "middle": middle, "leave": weight(3, 3, channels, 4)}
    state = fresh(params)
    images, noise = drawn(batch, side, side, 4), drawn(batch, side, side, 4)

    def loss(params: Any, images: Any, noise: Any) -> Any:
        x = convolved(low(0.8 * images + 0.6 * noise), low(params["enter"]))
        for kernel in params["middle"]:
            x = x + jax.nn.silu(convolved(x, low(kernel)))
        return jnp.square(convolved(x, low(params["leave"])).astype(jnp.float32) - noise).mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def train(state: Any, images: Any, noise: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(state["params"], images, noise)
        return adam(state, gradients), value

    def step(number: int) -> None:
        nonlocal state
        state, value = train(state, images, noise)
        if number % 50 == 49:
            print(number, float(value))

    return step


def healthy(name: str, build: Any) -> Job:
    """A job without a bottleneck."""
    return Job(f"heldout-jax-healthy-{name}", "", build, build, healthy=True)


JOBS = (
    Job("heldout-jax-masked-text", "input-bound", **pair(masked_text, True, False)),
    Job("heldout-jax-policy-epochs", "device-sync", **pair(policy_epochs, True, False)),
    Job(
        "heldout-jax-convolution-precision",
        "fp32-matmul",
        **pair(convolution_precision, lax.Precision.HIGHEST, lax.Precision.DEFAULT),
    ),
    Job("heldout-jax-own-target", "recompilation", **pair(own_target, True, False)),
    Job("heldout-jax-recommender-eager", "eager-execution", **pair(recommender_eager, True, False)),
    Job("heldout-jax-vae-evaluation", "step-outliers", steps=12, **pair(vae_evaluation, 6, 600)),
    healthy("mixer", healthy_mixer),
    healthy("denoiser", healthy_denoiser),
)
