"""Jobs of TensorFlow and Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.diff.cpu_jobs.job import Job, Parts, Step, repeat


def _train(net: Any, optimizer: Any, loss_of: Callable[[Any], Any]) -> Step:
    """A tf.function of one's own, whose loss is looked at."""
    import tensorflow as tf

    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(x))
        slopes = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(slopes, net.trainable_variables, strict=True))
        return loss

    step = tf.function(train)
    return lambda x: float(step(x))


def _gru(batch: int) -> Parts:
    """A recurrent layer."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.layers.GRU(64), keras.layers.Dense(1)])
    step = _train(net, keras.optimizers.SGD(0.01), lambda x: tf.square(net(x, training=True)))
    return step, repeat(lambda: tf.random.normal((batch, 16, 32)))


def _images(batch: int) -> Parts:
    """Convolutions over a mapped tf.data pipeline."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential(
        [keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(10)]
    )
    pictures = tf.data.Dataset.range(10**9).map(lambda n: tf.random.stateless_uniform((16, 16, 3), (n, n)))
    step = _train(net, keras.optimizers.Adam(), lambda x: net(x, training=True) ** 2)
    return step, iter(pictures.batch(batch))


def _autoencoder(batch: int) -> Parts:
    """Dense layers over prefetched data."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.layers.Dense(size, activation="tanh") for size in (256, 32, 256, 512)])
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((1024, 512))).repeat().batch(batch).prefetch(1)
    step = _train(net, keras.optimizers.SGD(0.05), lambda x: (net(x, training=True) - x) ** 2)
    return step, iter(data)


def _dense(batch: int) -> Parts:
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


def _words(batch: int) -> Parts:
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
    return (lambda each: net.train_on_batch(*each)), repeat(
        lambda: (dice.integers(0, 5_000, (batch, 24)), dice.random((batch, 1)))
    )


def _pictures(batch: int) -> Parts:
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
    return (lambda each: net.train_on_batch(*each)), repeat(
        lambda: (dice.random((batch, 20, 20, 3), "f4"), dice.random((batch, 4), "f4"))
    )


JOBS: dict[str, tuple[Job, int]] = {
    "tf_gru": (_gru, 64),
    "tf_images": (_images, 32),
    "tf_autoencoder": (_autoencoder, 64),
    "keras_dense": (_dense, 128),
    "keras_words": (_words, 64),
    "keras_pictures": (_pictures, 32),
}
