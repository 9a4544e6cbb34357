"""TensorFlow: a tf.function and an eager op."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

import stepscope
from benchmarks.overhead.windows import STEPS, Step, in_turns

profiler: Any = tf.profiler.experimental
w = tf.ones((256, 256))


@tf.function
def update(a: Any) -> Any:
    return tf.tanh(a @ a) * 1e-3


def step() -> None:
    for _ in range(4):
        update(w).numpy()
    (w * 2).numpy()


@contextmanager
def own() -> Iterator[Step]:
    options = profiler.ProfilerOptions(host_tracer_level=2, python_tracer_level=1, device_tracer_level=1)
    with tempfile.TemporaryDirectory() as folder:
        profiler.start(folder, options=options)
        number = iter(range(10**6))
        mark = [profiler.Trace("train", step_num=next(number), _r=1)]

        def ended() -> None:
            mark[0].__exit__(None, None, None)
            mark[0] = profiler.Trace("train", step_num=next(number), _r=1)

        yield ended
        profiler.stop()


@contextmanager
def ours() -> Iterator[Step]:
    with tempfile.TemporaryDirectory() as folder:
        plan = stepscope.schedule(active=STEPS)
        with stepscope.profile(folder, schedule=plan, backends=("tensorflow",)) as recording:
            yield recording.step


for _ in range(10):
    step()
print(json.dumps(in_turns(step, own, ours)))
