"""One of several TensorFlow workers that train together on CPUs; one of them does more in each step than the others.

python tensorflow_job.py OUT RANK LATE_RANK HOW, with the addresses of all in TF_CONFIG
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Iterator

import tensorflow as tf

import stepscope

SLOWER_SECONDS = float(os.environ["SLOWER_SECONDS"])
STEPS = 8
ROWS, WIDTH = 64, 256
# TensorFlow's own recorder may write into freed memory when it ends (docs/capture/tensorflow.md), and hang for good.
HANGS_SECONDS = 240


def batches(slowly: bool) -> Iterator[tf.Tensor]:
    """What this worker feeds the loop with."""
    for number in range(STEPS):
        if slowly:
            time.sleep(SLOWER_SECONDS)
        yield tf.fill((ROWS, WIDTH), number / STEPS)


def main() -> None:
    """Record five of the steps."""
    faulthandler.dump_traceback_later(HANGS_SECONDS, exit=True)
    out, rank, late, how = sys.argv[1:5]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.ones((WIDTH, WIDTH)))

    def replica_step(batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(batch @ weights)))
        gradient = tape.gradient(loss, weights)
        both = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
        weights.assign_sub(0.01 * both)
        return loss

    def step(batch: tf.Tensor) -> tf.Tensor:
        return strategy.run(replica_step, args=(batch,))

    step = tf.function(step)
    is_late = rank == late
    with stepscope.profile(out, schedule=stepscope.schedule(warmup=2, active=5)) as prof:
        for batch in prof.input(batches(is_late and how == "input")):
            if is_late and how == "python":
                with stepscope.annotate("metrics"):
                    time.sleep(SLOWER_SECONDS)
            step(batch).numpy()
            prof.step()


if __name__ == "__main__":
    main()
