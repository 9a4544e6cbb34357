"""A DQN agent of TF-Agents on a small environment, timed by the job itself: tf_agents_dqn.py plain|FOLDER REGION…

Needs an environment of its own: tf-agents 0.19 with TensorFlow 2.15 and Keras 2.15, or a newer TensorFlow with tf-keras and
TF_USE_LEGACY_KERAS=1 in the environment.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import py_environment, tf_py_environment
from tf_agents.networks import sequential
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import common

ITERATIONS = 40


class Walk(py_environment.PyEnvironment):
    """A walk on a line that ends after fifty steps: an environment in Python, as most are."""

    def __init__(self) -> None:
        super().__init__()
        self._action_spec = array_spec.BoundedArraySpec((), np.int32, 0, 1, "action")
        self._observation_spec = array_spec.ArraySpec((8,), np.float32, "observation")
        self._place, self._count = 0.0, 0

    def action_spec(self) -> Any:
        return self._action_spec

    def observation_spec(self) -> Any:
        return self._observation_spec

    def _observed(self) -> Any:
        return np.full((8,), self._place, np.float32)

    def _reset(self) -> Any:
        self._place, self._count = 0.0, 0
        return ts.restart(self._observed())

    def _step(self, action: Any) -> Any:
        if self._count >= 50:
            return self.reset()
        self._place += 0.1 if action else -0.1
        self._count += 1
        if self._count >= 50:
            return ts.termination(self._observed(), reward=self._place)
        return ts.transition(self._observed(), reward=self._place)


environment = tf_py_environment.TFPyEnvironment(Walk())
network = sequential.Sequential(
    [tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(2)]
)  # fmt: skip
agent = dqn_agent.DqnAgent(
    environment.time_step_spec(),
    environment.action_spec(),
    q_network=network,
    optimizer=tf.keras.optimizers.Adam(1e-3),
    td_errors_loss_fn=common.element_wise_squared_loss,
)
agent.initialize()
replay = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    agent.collect_data_spec, batch_size=1, max_length=2_000
)
driver = dynamic_step_driver.DynamicStepDriver(
    environment, agent.collect_policy, observers=[replay.add_batch], num_steps=20
)
driver.run = common.function(driver.run)
train_step = common.function(agent.train)
for _ in range(3):
    driver.run()
batches = iter(replay.as_dataset(sample_batch_size=256, num_steps=2).prefetch(2))


asked_for: list[int] = []  # when each batch was


def collect() -> None:
    driver.run()


def train() -> None:
    for _ in range(5):
        asked_for.append(time.perf_counter_ns())
        experience, _ = next(batches)
        train_step(experience)


collect()
train()  # traced before anything is timed


def loop(region: Any, step: Any) -> dict[str, list[int]]:
    took: dict[str, list[int]] = {"collect": [], "train": []}
    for _ in range(ITERATIONS):
        for name, work in (("collect", collect), ("train", train)):
            with region(name):
                start = time.perf_counter_ns()
                work()
                took[name].append(time.perf_counter_ns() - start)
        step()
    return took


def main(folder: str, *regions: str) -> None:
    if folder == "plain":
        took = loop(contextlib.nullcontext, lambda: None)
    else:
        import stepscope

        with stepscope.profile(
            folder, regions=regions, schedule=stepscope.schedule(active=ITERATIONS)
        ) as prof:
            took = loop(prof.region, prof.step)
    print(json.dumps({"took": took, "asked_for": asked_for, "tensorflow": tf.__version__}), flush=True)  # noqa: T201


main(*sys.argv[1:])
