"""Jobs as in `cpu_jobs` that were recorded when nothing about the noise was changed any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.diff.cpu_jobs import FIRST, SECOND, Job, Step, made
from benchmarks.diff.cpu_jobs_third import THIRD


def torch_generator(batch: int) -> tuple[Step, Iterator[Any]]:
    """Two nets against each other."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    maker = nn.Sequential(nn.Linear(16, 128), nn.LeakyReLU(), nn.Linear(128, 256))
    judge = nn.Sequential(nn.Linear(256, 128), nn.LeakyReLU(), nn.Linear(128, 1))
    optimizers = [torch.optim.Adam(net.parameters()) for net in (maker, judge)]

    def step(real: Any) -> object:
        fake = maker(torch.randn(real.shape[0], 16))
        for turn in (1, 0):
            loss = judge(fake.detach()).mean() - judge(real).mean() if turn else -judge(fake).mean()
            optimizers[turn].zero_grad()
            loss.backward()
            optimizers[turn].step()
        return fake

    return step, made(lambda: torch.randn(batch, 256))


def torch_graph(batch: int) -> tuple[Step, Iterator[Any]]:
    """Messages along the edges of a graph: gather and scatter."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer, head = nn.Linear(32, 32), nn.Linear(32, 1)
    edges = torch.randint(0, 2_000, (2, 8_000))
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)

    def step(nodes: Any) -> object:
        optimizer.zero_grad()
        for _ in range(2):
            sent = torch.relu(layer(nodes))[edges[0]]
            nodes = nodes + torch.zeros_like(nodes).index_add(0, edges[1], sent)
        loss = head(nodes).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, made(lambda: torch.randn(max(2_000, batch), 32))


def jax_vmap(batch: int) -> tuple[Step, Iterator[Any]]:
    """Per-sample slopes of a small net; each step is waited for."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(5)
    weights = (jax.random.normal(key, (64, 128)) * 0.1, jax.random.normal(key, (128, 1)) * 0.1)

    def loss(weights: Any, x: Any) -> Any:
        return jnp.square(jnp.sin(x @ weights[0]) @ weights[1])[0]

    slopes = jax.vmap(jax.grad(loss), (None, 0))
    update = jax.jit(
        lambda weights, x: jax.tree.map(lambda w, g: w - 0.1 * g.mean(0), weights, slopes(weights, x))
    )
    state = [weights]

    def step(x: Any) -> object:
        state[0] = update(state[0], x)
        return jax.block_until_ready(state[0])

    return step, made(lambda: jax.random.normal(key, (batch, 64)))


def jax_eager(batch: int) -> tuple[Step, Iterator[Any]]:
    """Ops one by one, without jit."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(6)
    weights = [jax.random.normal(key, (96, 96)) * 0.1 for _ in range(3)]

    def step(x: Any) -> object:
        for each in weights:
            x = jnp.tanh(x @ each) + x
        return float(jnp.mean(x))

    return step, made(lambda: jax.random.normal(key, (batch, 96)))


def tf_autoencoder(batch: int) -> tuple[Step, Iterator[Any]]:
    """Dense layers in a tf.function over prefetched data."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.layers.Dense(size, activation="tanh") for size in (256, 32, 256, 512)])
    optimizer = keras.optimizers.SGD(0.05)
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((1024, 512))).repeat().batch(batch).prefetch(1)

    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(x, training=True) - x) ** 2)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables, strict=True)
        )
        return loss

    step = tf.function(train)
    return (lambda x: float(step(x))), iter(data)


def keras_pictures(batch: int) -> tuple[Step, Iterator[Any]]:
    """Convolutions and batch normalisation in Keras."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    layers = keras.layers
    net = keras.Sequential(
        [
            layers.Conv2D(8, 3),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalMaxPooling2D(),
            layers.Dense(4),
        ]
    )
    net.compile(optimizer="adam", loss="mse")
    dice = np.random.default_rng(0)
    return (lambda each: net.train_on_batch(*each)), made(
        lambda: (dice.random((batch, 20, 20, 3), "f4"), dice.random((batch, 4), "f4"))
    )


FOURTH: dict[str, tuple[Job, int]] = {
    "torch_generator": (torch_generator, 64),
    "torch_graph": (torch_graph, 2_000),
    "jax_vmap": (jax_vmap, 256),
    "jax_eager": (jax_eager, 128),
    "tf_autoencoder": (tf_autoencoder, 64),
    "keras_pictures": (keras_pictures, 32),
}
JOBS = {**FIRST, **SECOND, **THIRD, **FOURTH}
