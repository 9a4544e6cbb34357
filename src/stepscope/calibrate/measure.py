"""Measures the device of this machine: products by number format, memory, L2, copies, launches."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from stepscope.analysis.kernels.measured_peaks import MeasuredDevice
from stepscope.errors import StepscopeError

Said = Callable[[str], None]
NO_FRAMEWORK = "Neither torch nor jax is installed here: there is nothing to measure with."
NO_DEVICE = "There is no GPU or TPU that torch or jax can use."
_FIX = "Run it on the machine that trains, in its environment; `stepscope doctor` shows what that environment has."


def measure(said: Said) -> MeasuredDevice:
    """What the first device reaches; an error with a fix where there is none."""
    installed = [name for name in ("torch", "jax") if find_spec(name) is not None]
    if not installed:
        raise StepscopeError(NO_FRAMEWORK, fix=_FIX)
    for name in installed:
        found = _with(name, said)
        if found is not None:
            return found
    raise StepscopeError(NO_DEVICE, fix=_FIX)


def _with(name: str, said: Said) -> MeasuredDevice | None:
    if name == "torch":
        from stepscope.calibrate.with_torch import measure_with_torch

        return measure_with_torch(said)
    from stepscope.calibrate.with_jax import measure_with_jax

    return measure_with_jax(said)
