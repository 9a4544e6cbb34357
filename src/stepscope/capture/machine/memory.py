"""Two figures of memory: what the framework's allocator handed out, and what the device has in use."""

from __future__ import annotations

import sys
from typing import Any

from stepscope.capture.machine.telemetry import resident_bytes


def allocator_bytes() -> int | None:
    """Bytes that the framework's allocator counts as in use; None where it does not count."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return _torch_bytes(torch)
    jax = sys.modules.get("jax")
    if jax is not None and getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        stats = [device.memory_stats() for device in jax.local_devices()]
        known = [int(each["bytes_in_use"]) for each in stats if each and "bytes_in_use" in each]
        if known:
            return sum(known)
    return _tensorflow_bytes()


def _torch_bytes(torch: Any) -> int:
    """Asked twice for each call of an op: the public function makes a dictionary of a hundred figures first."""
    try:
        stats = torch._C._cuda_memoryStats(torch.cuda.current_device())
        return int(stats["allocated_bytes"]["all"]["current"])
    except (AttributeError, KeyError, TypeError):  # another version
        return int(torch.cuda.memory_allocated())


def _tensorflow_bytes() -> int | None:
    tf: Any = sys.modules.get("tensorflow")
    if tf is None or not hasattr(tf, "config") or not tf.config.list_logical_devices("GPU"):
        return None
    return int(tf.config.experimental.get_memory_info("GPU:0")["current"])


def device_bytes() -> int | None:
    """Bytes in use on the device, whichever process holds them; without a device, the resident memory of the process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        return int(total - free)
    on_gpu = _nvml_bytes() if _has_gpu_runtime() else None
    return resident_bytes() if on_gpu is None else on_gpu


def _has_gpu_runtime() -> bool:
    jax = sys.modules.get("jax")
    if jax is not None and getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        return any(device.platform == "gpu" for device in jax.local_devices())
    return _tensorflow_bytes() is not None


def _nvml_bytes() -> int | None:
    try:
        from stepscope.capture.machine import nvml

        return nvml.shared().used_bytes()
    except Exception:  # no driver
        return None
