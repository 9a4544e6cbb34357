"""Compiles small trainings and keeps what XLA's own cost analysis says of them, for tests of agreement.

  python xla_cost.py OUT

Profiles a few steps of each, and writes NAME.hlo.gz, the program as the profile carries it, and a line of costs.json:
FLOPs and transcendental functions by `cost_analysis()`, sizes by `memory_analysis()`. The programs are taken out of the
profile with stepscope.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import polars as pl

import stepscope

WIDTH, HEADS, LENGTH, BATCH, WORDS = 256, 4, 128, 8, 512
RATE = 1e-3
Step = Callable[..., Any]


def transformer(key: jax.Array) -> dict[str, Any]:
    """Weights of two layers."""
    keys = jax.random.split(key, 5)

    def weight(at: int, *sizes: int) -> jax.Array:
        return jax.random.normal(keys[at], sizes, jnp.float32) * 0.02

    layer = {
        "qkv": weight(1, WIDTH, 3 * WIDTH),
        "out": weight(2, WIDTH, WIDTH),
        "up": weight(3, WIDTH, 4 * WIDTH),
        "down": weight(4, 4 * WIDTH, WIDTH),
    }
    return {"embed": weight(0, WORDS, WIDTH), "layers": [layer, jax.tree.map(jnp.copy, layer)]}


def attention(layer: dict[str, Any], h: jax.Array, dtype: Any) -> jax.Array:
    """Written out, so that XLA sees its products."""
    scale = jax.lax.rsqrt(h.astype(jnp.float32).var(-1, keepdims=True) + 1e-5).astype(dtype)
    normed = (h - h.mean(-1, keepdims=True)) * scale
    parts = jnp.split(normed @ layer["qkv"].astype(dtype), 3, -1)
    query, key, value = (part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS) for part in parts)
    scores = jnp.einsum("blhd,bmhd->bhlm", query, key) / 8
    weights = jax.nn.softmax(scores.astype(jnp.float32), -1).astype(dtype)
    mixed = jnp.einsum("bhlm,bmhd->blhd", weights, value)
    return mixed.reshape(BATCH, LENGTH, WIDTH) @ layer["out"].astype(dtype)


def text_loss(weights: dict[str, Any], x: jax.Array, y: jax.Array, dtype: Any) -> jax.Array:
    """Next word."""
    h = weights["embed"][x].astype(dtype)
    for number, layer in enumerate(weights["layers"]):
        with jax.named_scope(f"layer_{number}"):
            with jax.named_scope("attention"):
                h = h + attention(layer, h, dtype)
            with jax.named_scope("mlp"):
                h = h + jax.nn.gelu(h @ layer["up"].astype(dtype)) @ layer["down"].astype(dtype)
    scores = jax.nn.log_softmax((h @ weights["embed"].T.astype(dtype)).astype(jnp.float32))
    return -jnp.take_along_axis(scores, y[..., None], -1).mean()


def conv(key: jax.Array) -> dict[str, Any]:
    """Weights of two convolutions and a head."""
    keys = jax.random.split(key, 3)
    sizes = {"a": (3, 3, 3, 32), "b": (3, 3, 32, 64), "w": (64, 10)}
    return {name: jax.random.normal(k, sizes[name]) * 0.1 for name, k in zip(sizes, keys, strict=True)}


def picture_loss(weights: dict[str, Any], x: jax.Array, y: jax.Array, dtype: Any) -> jax.Array:
    """Class of a picture; one convolution has padding, the other a stride as well."""
    numbers = ("NHWC", "HWIO", "NHWC")
    convolve = partial(jax.lax.conv_general_dilated, padding="SAME", dimension_numbers=numbers)
    with jax.named_scope("stem"):
        h = jax.nn.relu(convolve(x.astype(dtype), weights["a"].astype(dtype), (1, 1)))
    with jax.named_scope("block"):
        h = jax.nn.relu(convolve(h, weights["b"].astype(dtype), (2, 2)))
    scores = jax.nn.log_softmax((h.mean((1, 2)) @ weights["w"].astype(dtype)).astype(jnp.float32))
    return -jnp.take_along_axis(scores, y[:, None], -1).mean()


def training(loss: Step, name: str) -> Step:
    """A step of gradient descent, compiled under this name."""

    def step(weights: Any, x: jax.Array, y: jax.Array, dtype: Any) -> tuple[Any, jax.Array]:
        value, slopes = jax.value_and_grad(loss)(weights, x, y, dtype)
        return jax.tree.map(lambda weight, slope: weight - RATE * slope, weights, slopes), value

    step.__name__ = name
    return partial(jax.jit, static_argnums=3, donate_argnums=0)(step)


def record(
    out: Path, name: str, weights: Any, step: Any, data: tuple[Any, Any], dtype: Any
) -> dict[str, Any]:
    """Profile three steps, keep the program, and give its costs."""
    compiled = step.lower(weights, *data, dtype).compile()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for number in range(3):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    weights, value = compiled(weights, *data)
                    value.block_until_ready()
        modules = stepscope.load(folder).traces[0].modules
    # Programs that were compiled before are in the profile too; the newest is ours.
    mine = modules.filter(pl.col("name").str.starts_with("jit_step")).sort("program_id")
    with gzip.GzipFile(out / f"{name}.hlo.gz", "wb", 9, mtime=0) as target:
        target.write(mine["hlo"][-1])
    cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    sizes = {
        size: getattr(memory, f"{size}_size_in_bytes") for size in ("argument", "output", "alias", "temp")
    }
    figures = {"flops": cost["flops"], "transcendentals": cost.get("transcendentals", 0)}
    return {"name": name, "device": jax.devices()[0].device_kind, "jax": jax.__version__, **figures, **sizes}


def main() -> None:
    """All recordings, on the device that JAX prefers."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    key = jax.random.PRNGKey(0)
    kind = jax.devices()[0].platform
    words = jax.random.randint(key, (BATCH, LENGTH), 0, WORDS)
    pictures = jax.random.normal(key, (16, 32, 32, 3)), jnp.arange(16) % 10
    costs = []
    for dtype, label in ((jnp.bfloat16, "bf16"), (jnp.float32, "fp32")):
        text = training(text_loss, f"step_text_{label}")
        costs.append(
            record(out, f"{kind}_transformer_{label}", transformer(key), text, (words, words), dtype)
        )
        picture = training(picture_loss, f"step_picture_{label}")
        costs.append(record(out, f"{kind}_conv_{label}", conv(key), picture, pictures, dtype))
    (out / f"{kind}_costs.json").write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()
