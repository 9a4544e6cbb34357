"""Records a training loop of TensorFlow for the benchmark, where no corpus has one. Wants no GPU.

  python tf_loop.py OUT

Ten steps of a small convolutional network under tf.profiler.experimental.Trace, with batches from tf.data.
"""

from __future__ import annotations

import sys

import tensorflow as tf

BATCH, SIDE, CLASSES, STEPS = 64, 64, 10, 10


def make_batches() -> tf.data.Dataset:
    """Images of noise, made in parallel and ahead of time."""

    def make(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.random.normal((BATCH, SIDE, SIDE, 3)), tf.fill((BATCH,), number % CLASSES)

    return tf.data.Dataset.range(1_000).map(make, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def make_network() -> tf.keras.Model:
    """Four convolutions and a classifier."""
    layers = [
        tf.keras.layers.Conv2D(width, 3, strides=2, activation="relu", padding="same")
        for width in (32, 64, 64, 128)
    ]
    return tf.keras.Sequential([*layers, tf.keras.layers.Flatten(), tf.keras.layers.Dense(CLASSES)])


def main(out: str) -> None:
    """Warm up, then record."""
    network, optimizer = make_network(), tf.keras.optimizers.Adam()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            value = loss(labels, network(images, training=True))
        optimizer.apply_gradients(
            zip(tape.gradient(value, network.trainable_variables), network.trainable_variables, strict=True)
        )
        return value

    batches = iter(make_batches())
    for _ in range(3):
        train(*next(batches))
    tf.profiler.experimental.start(out)
    for step in range(STEPS):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train(*next(batches)).numpy()
    tf.profiler.experimental.stop()


if __name__ == "__main__":
    main(sys.argv[1])
