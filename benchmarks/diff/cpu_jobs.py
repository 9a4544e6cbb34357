"""Small jobs of three frameworks on the CPU, recorded through our capture as anybody would: what tells whether the diff cries wolf.

A job is a function that makes `step()` and batches of a size; the frameworks are imported only in the process that runs one. What the diff
supposes of noise was mended on what FIRST, SECOND and THIRD showed; those of FOURTH were recorded afterwards, to confirm it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

Step = Callable[[Any], object]
Job = Callable[[int], tuple[Step, Iterator[Any]]]


def torch_cnn(batch: int) -> tuple[Step, Iterator[Any]]:
    """Convolutions over images that a DataLoader makes."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    pictures = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(0, 10, (4096,)))
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step(each: Any) -> object:
        images, labels = each
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, iter(DataLoader(pictures, batch, shuffle=True, num_workers=1))


def torch_lstm(batch: int) -> tuple[Step, Iterator[Any]]:
    """A recurrent net over sequences."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net, head = nn.LSTM(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 1)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()])

    def step(each: Any) -> object:
        optimizer.zero_grad()
        loss = (head(net(each)[0]) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, made(lambda: torch.randn(batch, 24, 64))


def jax_mlp(batch: int) -> tuple[Step, Iterator[Any]]:
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

    update = jax.jit(
        lambda weights, x: jax.tree.map(lambda w, g: w - 0.01 * g, weights, jax.grad(loss)(weights, x))
    )
    state = [weights]

    def step(x: Any) -> object:
        state[0] = update(state[0], x)
        return jax.block_until_ready(state[0])

    return step, made(lambda: jax.random.normal(keys[3], (batch, 256)))


def keras_dense(batch: int) -> tuple[Step, Iterator[Any]]:
    """A Keras model over tf.data."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential(
        [keras.layers.Dense(256, activation="relu"), keras.layers.Dropout(0.1), keras.layers.Dense(10)]
    )
    net.compile(optimizer="adam", loss="mse")
    x, y = np.random.randn(2048, 128).astype("f4"), np.random.randn(2048, 10).astype("f4")
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(512).batch(batch).repeat().prefetch(2)
    return (lambda each: net.train_on_batch(*each)), iter(data)


def torch_attention(batch: int) -> tuple[Step, Iterator[Any]]:
    """An encoder in bf16."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(96, 4, 192, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(net.parameters())

    def step(each: Any) -> object:
        with torch.autocast("cpu", torch.bfloat16):
            loss = net(each).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, made(lambda: torch.randn(batch, 32, 96))


def torch_lookup(batch: int) -> tuple[Step, Iterator[Any]]:
    """Embeddings and a net over them, as for recommendations."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    tables = nn.ModuleList(nn.EmbeddingBag(20_000, 32, mode="sum") for _ in range(6))
    net = nn.Sequential(nn.Linear(192, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adagrad([*tables.parameters(), *net.parameters()])

    def step(each: Any) -> object:
        optimizer.zero_grad()
        found = torch.cat([table(each[:, place]) for place, table in enumerate(tables)], 1)
        loss = nn.functional.softplus(net(found)).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, made(lambda: torch.randint(0, 20_000, (batch, 6, 8)))


def jax_conv(batch: int) -> tuple[Step, Iterator[Any]]:
    """Convolutions, without waiting for each step."""
    import jax
    import jax.numpy as jnp

    key = jax.random.key(1)
    kernels = [jax.random.normal(key, (3, 3, inner, outer)) * 0.1 for inner, outer in ((3, 16), (16, 16))]

    def loss(kernels: Any, x: Any) -> Any:
        for each in kernels:
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(
                    x, each, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
            )
        return jnp.mean(x)

    update = jax.jit(lambda kernels, x: jax.tree.map(lambda w, g: w - g, kernels, jax.grad(loss)(kernels, x)))
    state = [kernels]

    def step(x: Any) -> object:
        state[0] = update(state[0], x)
        return state[0]

    return step, made(lambda: jax.random.normal(key, (batch, 24, 24, 3)))


def tf_gru(batch: int) -> tuple[Step, Iterator[Any]]:
    """A tf.function of one's own, with a recurrent layer."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.layers.GRU(64), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x, training=True)))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables, strict=True)
        )
        return loss

    step = tf.function(train)
    return (lambda x: float(step(x))), made(lambda: tf.random.normal((batch, 16, 32)))


def made(make: Callable[[], Any]) -> Iterator[Any]:
    while True:
        yield make()


FIRST: dict[str, tuple[Job, int]] = {
    "torch_cnn": (torch_cnn, 64),
    "torch_lstm": (torch_lstm, 32),
    "jax_mlp": (jax_mlp, 256),
    "keras_dense": (keras_dense, 128),
}
SECOND: dict[str, tuple[Job, int]] = {
    "torch_attention": (torch_attention, 16),
    "torch_lookup": (torch_lookup, 256),
    "jax_conv": (jax_conv, 32),
    "tf_gru": (tf_gru, 64),
}
