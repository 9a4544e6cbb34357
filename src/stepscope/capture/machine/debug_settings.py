"""Which settings for debugging are on, that make every step slower: checks for NaN, launches that wait, functions that are not compiled.

They are only read, from modules that the job has imported, and by the ways that initialise nothing; what fails is not noted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

ANOMALY = "torch.autograd.set_detect_anomaly"
_JAX = (
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_jit",
    "jax_check_tracer_leaks",
    "jax_enable_checks",
)
_RUN_EAGERLY = "tensorflow.python.eager.polymorphic_function.eager_function_run"
_OF_DATA = "tensorflow.python.data.ops.debug_mode"
# Each has an object of this name while it is on, for each thread.
_CALLBACKS = {"check_numerics": "check_numerics_callback", "dump_debug_info": "dumping_callback"}
_TF_NAMES = {
    "check_numerics": "tf.debugging.enable_check_numerics",
    "dump_debug_info": "tf.debugging.experimental.enable_dump_debug_info",
}


def look(frameworks: Iterable[str]) -> list[str]:
    """The names of those that are on now."""
    found: list[str] = []
    names = set(frameworks)
    for framework, settings in _SETTINGS.items():
        if framework in names and framework in sys.modules:
            found += _read(settings)
    return found + (_read(_of_driver) if names & _SETTINGS.keys() else [])


def _read(settings: Callable[[], Iterator[str]]) -> list[str]:
    """Those that could be read before one that fails, as in another version."""
    found: list[str] = []
    try:
        found.extend(settings())
    except Exception:  # the rest of the recording is worth having
        return found
    return found


def _of_torch() -> Iterator[str]:
    torch: Any = sys.modules["torch"]
    if torch.is_anomaly_enabled():
        yield ANOMALY
    if torch.are_deterministic_algorithms_enabled():
        yield "torch.use_deterministic_algorithms"
    # To ask for it initialises CUDA.
    if torch.cuda.is_initialized() and torch.cuda.get_sync_debug_mode():
        yield "torch.cuda.set_sync_debug_mode"


def _of_jax() -> Iterator[str]:
    config: Any = sys.modules["jax"].config
    yield from (name for name in _JAX if getattr(config, name, False))
    if os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "").lower() == "platform":
        yield "XLA_PYTHON_CLIENT_ALLOCATOR=platform"


def _of_tensorflow() -> Iterator[str]:
    if getattr(sys.modules.get(_RUN_EAGERLY), "RUN_FUNCTIONS_EAGERLY", False):
        yield "tf.config.run_functions_eagerly"
    for name, callback in _CALLBACKS.items():
        module = sys.modules.get(f"tensorflow.python.debug.lib.{callback}")
        if getattr(getattr(module, "_state", None), callback, None) is not None:
            yield _TF_NAMES[name]
    if getattr(sys.modules.get(_OF_DATA), "DEBUG_MODE", False):
        yield "tf.data.experimental.enable_debug_mode"


def _of_driver() -> Iterator[str]:
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        yield "CUDA_LAUNCH_BLOCKING=1"


_SETTINGS: dict[str, Callable[[], Iterator[str]]] = {
    "torch": _of_torch,
    "jax": _of_jax,
    "tensorflow": _of_tensorflow,
}
