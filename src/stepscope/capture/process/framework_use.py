"""Hear when a framework begins to compute: importing it says little, and a collector that starts before may initialise it.

PyTorch counts from its import on. TensorFlow and JAX are in use once they have looked for their devices: a profiler that made
them look would take from the job the choice of devices, which it may make after the import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stepscope.capture.process.on_import import after_import

FRAMEWORKS = ("torch", "tensorflow", "jax")
Act = Callable[[str], None]
_acts: dict[str, list[Act]] = {}
_in_use: set[str] = set()


def when_in_use(act: Act) -> None:
    """Call `act` with the name of each framework once it is in use; at once for those that are."""
    if not _acts:
        _acts.update({name: [] for name in FRAMEWORKS})
        after_import("torch", lambda _module: _tell("torch"))
        after_import("tensorflow.python.eager.context", _watch_context)
        after_import("jax._src.xla_bridge", _watch_backends)
    for name in FRAMEWORKS:
        if name in _in_use:
            _safely(act, name)
        else:
            _acts[name].append(act)


def forget(act: Act) -> None:
    """It need not be called any more."""
    for acts in _acts.values():
        if act in acts:
            acts.remove(act)


def tell_in_use(name: str) -> None:
    """The framework computes, as another hook has seen."""
    _tell(name)


def _tell(name: str) -> None:
    if name in _in_use:
        return
    _in_use.add(name)
    waiting, _acts[name] = _acts.get(name, []), []
    for act in waiting:
        _safely(act, name)


def _safely(act: Act, name: str) -> None:
    try:
        act(name)
    except Exception:  # in the middle of what the job does
        pass


def _watch_context(module: Any) -> None:
    if getattr(module.context_safe() if hasattr(module, "context_safe") else None, "_initialized", False):
        _tell("tensorflow")
        return
    initialise = module.Context.ensure_initialized

    @functools.wraps(initialise)
    def ensure_initialized(self: Any, *arguments: Any, **options: Any) -> Any:
        result = initialise(self, *arguments, **options)
        if "tensorflow" not in _in_use:
            _tell("tensorflow")
        return result

    module.Context.ensure_initialized = ensure_initialized


def _watch_backends(module: Any) -> None:
    if getattr(module, "_backends", None):
        _tell("jax")
        return
    look = module.backends

    @functools.wraps(look)
    def backends(*arguments: Any, **options: Any) -> Any:
        result = look(*arguments, **options)
        if "jax" not in _in_use:
            _tell("jax")
        return result

    module.backends = backends
