"""One collector per framework, chosen by what the job has imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module

from stepscope.capture.backends.base import Backend, Options
from stepscope.capture.process.troubles import Troubles, trouble

NAMES = ("torch", "tensorflow", "jax", "host")
# Only where someone asks for it: it needs a hook in the session.
ON_REQUEST = ("session",)
# Their collectors can record device activity and launches alone.
LIGHT = ("torch", "jax")
# Modules whose name is not what users call the collector.
_MODULES = {"session": "tf1_session"}


def detect() -> tuple[str, ...]:
    """The frameworks that this process uses. One that is imported and idle only counts where no other is in use."""
    loaded = [name for name in NAMES if name in sys.modules]
    used = [name for name in loaded if is_in_use(name)]
    return tuple(used or loaded) or ("host",)


def is_in_use(name: str) -> bool:
    """Whether the framework has begun to compute. PyTorch does not report that, so importing it counts."""
    if name == "tensorflow":
        context = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
        session = "tensorflow.python.client.session" in sys.modules and not _is_eager()
        return bool(getattr(context, "_initialized", False)) or session
    if name == "jax":
        return bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))
    return True


def _is_eager() -> bool:
    context = sys.modules.get("tensorflow.python.eager.context")
    return context is None or bool(context.executing_eagerly())


def make(names: Sequence[str], options: Options, troubles: Troubles) -> list[Backend]:
    """The collectors of these names. The driver lets only one of them trace the GPU: the first that uses it."""
    unknown = [name for name in names if name not in (*NAMES, *ON_REQUEST)]
    if unknown:
        raise ValueError(f"no backend {unknown[0]!r}: there are {', '.join(NAMES)}")
    users = [name for name in names if uses_gpu(name)]
    made = []
    for name in names:
        own = options if len(users) < 2 or name == users[0] else replace(options, device=False)
        made.append(import_module(f"stepscope.capture.backends.{_MODULES.get(name, name)}").make(own))
    if len(users) > 1:
        troubles.add(
            trouble("gpu-traced-once", f"{', '.join(users)} all use it.", first=users[0], other=users[1])
        )
    return made


def light_of(names: Sequence[str]) -> str | None:
    """Which of these frameworks can record a light window: the first that uses a GPU, as only one traces it."""
    first = next((name for name in names if uses_gpu(name)), None)
    return first if first in LIGHT else None


def make_light(names: Sequence[str], options: Options) -> Backend | None:
    """The collector of a light window; None where there is nothing for it to record."""
    name = light_of(names)
    if name is None:
        return None
    made: Backend = import_module(f"stepscope.capture.backends.{name}").make_light(options)
    return made


def uses_gpu(name: str) -> bool:
    """Whether the framework has a GPU in use."""
    try:
        if name == "torch":
            cuda = sys.modules["torch"].cuda
            return bool(cuda.is_available() and cuda.is_initialized())
        if name == "jax" and is_in_use("jax"):
            return any(device.platform == "gpu" for device in sys.modules["jax"].local_devices())
        if name == "tensorflow" and is_in_use("tensorflow"):
            return bool(sys.modules["tensorflow"].config.list_logical_devices("GPU"))
    except Exception:  # a framework that is half initialised uses none
        return False
    return False
