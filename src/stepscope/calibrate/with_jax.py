"""The measurements with JAX, on GPUs and TPUs. Without events on the device, a round is timed by the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from importlib import import_module
from typing import Any

from stepscope.analysis.kernels.measured_peaks import MeasuredDevice

Said = Callable[[str], None]
_SIDE = 8192
_ROUNDS = 5
_LEAST_S = 0.05
_LARGE = 1 * 2**30
_COPIED = 256 * 2**20
_LAUNCHES = 400


def measure_with_jax(said: Said) -> MeasuredDevice | None:
    """What the first device reaches; None where JAX has only the host."""
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    if device.platform == "cpu":
        return None
    said("matrix products")
    formats: dict[str, tuple[Any, str]] = {
        "bf16": (jnp.bfloat16, "default"),
        "fp16": (jnp.float16, "default"),
    }
    if device.platform != "tpu":
        formats |= {"tf32": (jnp.float32, "default"), "fp32": (jnp.float32, "highest")}
    flops = {name: _products(jax, jnp, *each) for name, each in formats.items()}
    said("memory")
    data = jnp.zeros(_LARGE // 4, jnp.float32)
    added = jax.jit(lambda array: array + 1)
    memory = 2 * _LARGE / _seconds(lambda: added(data))
    said("copies")
    host = import_module("numpy").zeros(_COPIED // 4, "float32")
    copied = _COPIED / _seconds(lambda: jax.device_put(host, device))
    said("launches")
    return MeasuredDevice(
        name=str(device.device_kind),
        by=f"jax {jax.__version__}",
        when=date.today().isoformat(),
        flops_per_s=flops,
        bytes_per_s=memory,
        pageable_bytes_per_s=copied,
        launch_ns=_launch_ns(jax, jnp),
    )


def _seconds(work: Callable[[], Any]) -> float:
    """The shortest mean of several rounds."""
    work().block_until_ready()
    began = time.perf_counter()
    work().block_until_ready()
    count = max(1, int(_LEAST_S / max(time.perf_counter() - began, 1e-6)))
    return min(_round(work, count) for _ in range(_ROUNDS))


def _round(work: Callable[[], Any], count: int) -> float:
    began = time.perf_counter()
    last = None
    for _ in range(count):
        last = work()
    if last is not None:
        last.block_until_ready()
    return (time.perf_counter() - began) / count


def _products(jax: Any, jnp: Any, kind: Any, precision: str) -> float:
    left = jnp.ones((_SIDE, _SIDE), kind)
    product = jax.jit(lambda one, other: jnp.matmul(one, other, precision=precision))
    return 2 * _SIDE**3 / _seconds(lambda: product(left, left))


def _launch_ns(jax: Any, jnp: Any) -> float:
    data, added = jnp.zeros(1), jax.jit(lambda array: array + 1)
    added(data).block_until_ready()
    began = time.perf_counter_ns()
    for _ in range(_LAUNCHES):
        data = added(data)
    taken = (time.perf_counter_ns() - began) / _LAUNCHES
    data.block_until_ready()
    return taken
