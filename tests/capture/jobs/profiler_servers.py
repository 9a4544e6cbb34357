"""A job with a profiler server: `profiler_servers.py jax|tensorflow PORT SECONDS`."""

from __future__ import annotations

import sys
import time
from typing import Any


def jax(port: int) -> Any:
    import jax

    jax.profiler.start_server(port)
    train = jax.jit(lambda x: x @ x)
    x = jax.numpy.ones((64, 64))
    return lambda: train(x).block_until_ready()


def tensorflow(port: int) -> Any:
    import tensorflow as tf

    tf.profiler.experimental.server.start(port)
    train = tf.function(lambda x: x @ x)
    x = tf.ones((64, 64))
    return lambda: train(x)


if __name__ == "__main__":
    step = globals()[sys.argv[1]](int(sys.argv[2]))
    step()
    print("ready", flush=True)  # noqa: T201
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end:
        step()
        time.sleep(0.005)
