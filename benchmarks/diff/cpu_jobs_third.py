"""More jobs as in `cpu_jobs`: eight of their 90 pairs differed before the noise was mended on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.diff.cpu_jobs import Job, Step, made


def torch_denoiser(batch: int) -> tuple[Step, Iterator[Any]]:
    """Convolutions over signals; looks at the loss of each step."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv1d(1, 32, 9, padding=4), nn.GroupNorm(4, 32), nn.SiLU(),
        nn.Conv1d(32, 32, 9, padding=4), nn.GroupNorm(4, 32), nn.SiLU(), nn.Conv1d(32, 1, 9, padding=4),
    )  # fmt: skip
    optimizer = torch.optim.RMSprop(net.parameters())

    def step(each: Any) -> object:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(net(each + 0.1 * torch.randn_like(each)), each)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, made(lambda: torch.randn(batch, 1, 512))


def torch_actors(batch: int) -> tuple[Step, Iterator[Any]]:
    """Two small nets that are trained in turn, as in reinforcement learning."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    nets = [
        nn.Sequential(nn.Linear(24, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        for _ in range(2)
    ]
    optimizers = [torch.optim.Adam(net.parameters(), foreach=False) for net in nets]

    def step(each: Any) -> object:
        with torch.no_grad():
            value = nets[1](each)
        for net, optimizer in zip(nets, optimizers, strict=True):
            optimizer.zero_grad()
            loss = ((net(each) - value) ** 2).mean()
            loss.backward()
            optimizer.step()
        return value

    return step, made(lambda: torch.randn(batch, 24))


def jax_scan(batch: int) -> tuple[Step, Iterator[Any]]:
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

    return step, made(lambda: jax.random.normal(key, (16, batch, 32)))


def jax_mixer(batch: int) -> tuple[Step, Iterator[Any]]:
    """Dense layers over two axes; nobody waits for a step."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(4)
    weights = [jax.random.normal(key, shape) * 0.1 for shape in ((32, 32), (64, 64))]

    def loss(weights: Any, x: Any) -> Any:
        x = x + jnp.einsum("bsc,st->btc", jax.nn.gelu(x), weights[0])
        return jnp.mean(jnp.square(x + jax.nn.gelu(x) @ weights[1]))

    update = jax.jit(lambda weights, x: jax.tree.map(lambda w, g: w - g, weights, jax.grad(loss)(weights, x)))
    state = [weights]

    def step(x: Any) -> object:
        state[0] = update(state[0], x)
        return state[0]

    return step, made(lambda: jax.random.normal(key, (batch, 32, 64)))


def tf_images(batch: int) -> tuple[Step, Iterator[Any]]:
    """Convolutions in a tf.function over a mapped tf.data pipeline."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential(
        [keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(10)]
    )
    optimizer = keras.optimizers.Adam()
    data = (
        tf.data.Dataset.range(10**9)
        .map(lambda n: tf.random.stateless_uniform((16, 16, 3), (n, n)))
        .batch(batch)
    )

    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(net(x, training=True) ** 2)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables, strict=True)
        )
        return loss

    step = tf.function(train)
    return (lambda x: float(step(x))), iter(data)


def keras_words(batch: int) -> tuple[Step, Iterator[Any]]:
    """Embeddings and attention in Keras."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    words = keras.Input((24,), dtype="int32")
    x = keras.layers.Embedding(5_000, 48)(words)
    x = keras.layers.MultiHeadAttention(2, 24)(x, x)
    net = keras.Model(words, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(x)))
    net.compile(optimizer="sgd", loss="mse")
    dice = np.random.default_rng(0)
    return (lambda each: net.train_on_batch(*each)), made(
        lambda: (dice.integers(0, 5_000, (batch, 24)), dice.random((batch, 1)))
    )


THIRD: dict[str, tuple[Job, int]] = {
    "torch_denoiser": (torch_denoiser, 16),
    "torch_actors": (torch_actors, 128),
    "jax_scan": (jax_scan, 32),
    "jax_mixer": (jax_mixer, 64),
    "tf_images": (tf_images, 32),
    "keras_words": (keras_words, 64),
}
