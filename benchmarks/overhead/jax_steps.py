"""JAX: a jitted update and an eager op."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp

import stepscope
from benchmarks.overhead.windows import STEPS, Step, in_turns

w = jnp.ones((256, 256))
update = jax.jit(lambda a: jnp.tanh(a @ a) * 1e-3)


def step() -> None:
    for _ in range(4):
        update(w).block_until_ready()
    (w * 2).block_until_ready()


@contextmanager
def own() -> Iterator[Step]:
    with tempfile.TemporaryDirectory() as folder, jax.profiler.trace(folder):
        number = iter(range(10**6))
        mark = [jax.profiler.StepTraceAnnotation("train", step_num=next(number))]
        mark[0].__enter__()

        def ended() -> None:
            mark[0].__exit__(None, None, None)
            mark[0] = jax.profiler.StepTraceAnnotation("train", step_num=next(number))
            mark[0].__enter__()

        yield ended


@contextmanager
def ours() -> Iterator[Step]:
    with tempfile.TemporaryDirectory() as folder:
        plan = stepscope.schedule(active=STEPS)
        with stepscope.profile(folder, schedule=plan, backends=("jax",)) as profiler:
            yield profiler.step


for _ in range(10):
    step()
print(json.dumps(in_turns(step, own, ours)))
