"""TensorFlow: tf.function and eager, tf.data, a custom op, regions, Keras, and a graph of TensorFlow 1."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

import stepscope
from tests.capture.jobs.facts import facts, tell

FOLDER = Path(sys.argv[1])
STEPS = stepscope.schedule(skip=4, warmup=2, active=4)
data = tf.data.Dataset.from_tensor_slices(tf.random.normal((512, 128))).map(lambda row: row * 2).batch(32)
weights = tf.Variable(tf.random.normal((128, 128)))


@stepscope.op("my_kernel")
def my_kernel(x: Any) -> Any:
    if tf.reduce_sum(x) > 0:  # AutoGraph must still see this
        return tf.reduce_sum(x * 2)
    return tf.reduce_sum(x)


def train(batch: Any) -> Any:
    with tf.GradientTape() as tape, stepscope.annotate("forward pass!"):
        loss = tf.reduce_sum((batch @ weights) ** 2)
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return my_kernel(loss)


def recorded(name: str, function: Any, **options: Any) -> stepscope.Profiler:
    with stepscope.profile(FOLDER / name, **options) as prof:
        for batch in prof.input(data):
            with stepscope.annotate("update"):
                function(batch)
            my_kernel(batch)
            prof.step()
    return prof


def regions(function: Any) -> stepscope.Profiler:
    prof = stepscope.Profiler(FOLDER / "regions")
    batch = tf.random.normal((32, 128))
    for _ in range(3):
        tf.reduce_sum(tf.sin(batch))
        with prof.region("train"):
            function(batch)
    prof.stop()
    return prof


def keras() -> stepscope.Profiler:
    model = tf.keras.Sequential([tf.keras.layers.Dense(16), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = tf.random.normal((256, 32)), tf.random.normal((256, 1))
    with stepscope.profile(FOLDER / "keras", schedule=STEPS) as prof:
        each = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: prof.step())
        model.fit(x, y, batch_size=16, epochs=1, verbose=0, callbacks=[each])
    return prof


def graph() -> stepscope.Profiler:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with stepscope.annotate("model"):
            w = tf.compat.v1.get_variable("w", (128, 128))
            out = tf.reduce_sum(tf.matmul(tf.ones((32, 128)), w))
        session.run(tf.compat.v1.global_variables_initializer())
        with stepscope.profile(FOLDER / "graph", schedule=STEPS) as prof:
            for _ in range(12):
                session.run(out)
                prof.step()
    return prof


if __name__ == "__main__":
    traced = tf.function(train)
    tell(
        scheduled=facts(recorded("scheduled", traced, schedule=STEPS)),
        eager=facts(recorded("eager", train, schedule=STEPS)),
        plain=facts(recorded("plain", traced)),
        regions=facts(regions(traced)),
        keras=facts(keras()),
        graph=facts(graph()),
        nodes=[
            node.name for node in traced.get_concrete_function(tf.ones((32, 128))).graph.as_graph_def().node
        ],
    )
