"""Waits for what the devices still have to do: at both ends of a window, of a region, and of a run of unprofiled steps."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


def wait_for_torch(torch: Any) -> None:
    """Synchronising while a CUDA graph is captured would break the capture."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        if not torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()
    elif hasattr(torch, "xpu") and torch.xpu.is_available() and torch.xpu.is_initialized():
        torch.xpu.synchronize()


def wait_for_tensorflow(tf: Any) -> None:
    """Ops run behind the host on a GPU, and with asynchronous eager execution on the CPU as well.

    Of several workers each waits for its own devices: a name without a worker means those.
    """
    wait = getattr(tf.raw_ops, "SyncDevice", None)
    if wait is None or not tf.executing_eagerly():
        return
    for device in tf.config.list_physical_devices():
        with tf.device(device.name.removeprefix("/physical_device:")):
            wait()


def wait_for_jax(jax: Any) -> None:
    """Dispatch is asynchronous: wait for what was started, on every device of this process."""
    if not getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        return
    for array in jax.live_arrays():
        if not array.is_deleted():
            array.block_until_ready()
    _wait_for_dropped(jax)
    jax.effects_barrier()


def _wait_for_dropped(jax: Any) -> None:
    """Programs may still run whose results the job has dropped: a device runs a program of ours after all of them."""
    zero = sys.modules["numpy"].float32(0)
    with jax.transfer_guard("allow"):  # whatever the job forbids itself
        started = [_last_program(jax)(jax.device_put(zero, device)) for device in jax.local_devices()]
    for result in started:
        result.block_until_ready()


@cache
def _last_program(jax: Any) -> Any:
    """Compiled once for each device. No reference to its argument stays: it would count as one of the job's arrays."""

    def stepscope_wait(number: Any) -> Any:
        return number + 1

    return jax.jit(stepscope_wait)


_WAITS = {"torch": wait_for_torch, "tensorflow": wait_for_tensorflow, "jax": wait_for_jax}


def wait_for_devices(names: tuple[str, ...]) -> bool:
    """Wait for the devices of these frameworks; false where one of them could not be waited for."""
    is_done = True
    for name in names:
        module, wait = sys.modules.get(name), _WAITS.get(name)
        if module is None or wait is None:
            continue
        try:
            wait(module)
        except Exception:  # a device in error: the job will hear of it itself
            is_done = False
    return is_done
