"""A job with settings for debugging: python debug_settings_job.py FOLDER FRAMEWORK. Says what of the framework is imported."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import stepscope


def with_torch() -> Callable[[], None]:
    """Anomaly detection and deterministic algorithms."""
    import torch

    torch.autograd.set_detect_anomaly(True)
    torch.use_deterministic_algorithms(True)
    weights = torch.ones(8, requires_grad=True)
    return lambda: (weights * 2).exp().sum().backward()  # type: ignore[no-any-return, unused-ignore]


def with_jax() -> Callable[[], None]:
    """Checks for NaN, and nothing compiled."""
    import jax

    jax.config.update("jax_debug_nans", True)
    jax.config.update("jax_disable_jit", True)
    return lambda: jax.numpy.ones(8).sum().block_until_ready()


def with_tensorflow() -> Callable[[], None]:
    """Functions that run eagerly, and checks of each op."""
    tf = importlib.import_module("tensorflow")
    tf.config.run_functions_eagerly(True)
    tf.debugging.enable_check_numerics()
    tf.data.experimental.enable_debug_mode()
    return lambda: tf.reduce_sum(tf.ones(8))


def main() -> None:
    """Three steps in the window."""
    folder, framework = Path(sys.argv[1]), sys.argv[2]
    act = {"torch": with_torch, "jax": with_jax, "tensorflow": with_tensorflow}[framework]()
    with stepscope.profile(folder, backends=(framework,), telemetry=False) as prof:
        for _ in range(3):
            act()
            prof.step()
    sys.stdout.write(json.dumps({}) + "\n")


if __name__ == "__main__":
    main()
