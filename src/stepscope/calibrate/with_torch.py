"""The measurements with PyTorch, on CUDA and ROCm."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from typing import Any

from stepscope.analysis.kernels.measured_peaks import MeasuredDevice

Said = Callable[[str], None]
_SIDE = {"fp64": 4096, "fp32": 4096, "tf32": 8192, "fp16": 8192, "bf16": 8192}
_AMPERE = 8  # the first architecture with tf32 and bf16
_ROUNDS = 5
_LEAST_S = 0.05  # of one round
_COPIED = 256 * 2**20
_LARGE = 2 * 2**30  # bytes of a tensor that no cache holds, or less where memory is short
_SHORT_OF = 8  # at most this part of the memory
_CHAINED = 50  # kernels of one graph
_LAUNCHES = 2_000


def measure_with_torch(said: Said) -> MeasuredDevice | None:
    """What the current device reaches; None where PyTorch has none."""
    import torch

    if not torch.cuda.is_available():
        return None
    about = torch.cuda.get_device_properties(torch.cuda.current_device())
    said("matrix products")
    flops = {name: rate for name in _SIDE if (rate := _products(torch, name, about)) is not None}
    said("memory")
    memory = _memory(torch, about)
    said("L2")
    cache = float(getattr(about, "L2_cache_size", 0)) or None
    cached = _cached(torch, int(cache)) if cache else None
    said("copies")
    pinned, pageable = (_from_host(torch, is_pinned) for is_pinned in (True, False))
    said("launches")
    return MeasuredDevice(
        name=torch.cuda.get_device_name(),
        by=f"torch {torch.__version__}",
        when=date.today().isoformat(),
        flops_per_s=flops,
        bytes_per_s=memory,
        l2_bytes=cache,
        l2_bytes_per_s=cached,
        pinned_bytes_per_s=pinned,
        pageable_bytes_per_s=pageable,
        launch_ns=_launch_ns(torch),
    )


def _seconds(torch: Any, work: Callable[[], Any]) -> float:
    """The shortest mean of several rounds, by the device's own clock."""
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    count = max(1, int(_LEAST_S / max(time.perf_counter() - began, 1e-6)))
    return min(_round(torch, work, count) for _ in range(_ROUNDS))


def _round(torch: Any, work: Callable[[], Any], count: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / count


def _products(torch: Any, name: str, about: Any) -> float | None:
    """FLOP/s of a large product; None where the device has no units for the format, or too little memory."""
    if name in ("tf32", "bf16") and about.major < _AMPERE:
        return None
    kinds = {"fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32}
    kind = kinds.get(name, torch.float16 if name == "fp16" else torch.bfloat16)
    side = _SIDE[name]
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        left, right = (torch.randn(side, side, device="cuda", dtype=kind) for _ in range(2))
        return float(2 * side**3 / _seconds(torch, lambda: left @ right))
    except RuntimeError:
        return None
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _memory(torch: Any, about: Any) -> float:
    """Bytes a second of a copy that reads and writes more than any cache holds."""
    size = min(_LARGE, about.total_memory // _SHORT_OF)
    source = torch.zeros(size // 4, device="cuda")
    target = torch.empty_like(source)
    return float(2 * source.nbytes / _seconds(torch, lambda: target.copy_(source)))


def _cached(torch: Any, size: int) -> float | None:
    """Bytes a second in the L2: what more data costs, so that starting a kernel does not count."""
    small, large = size // 32, size // 8
    times = [_chained(torch, each) for each in (small, large)]
    if times[1] <= times[0]:
        return None
    return 2 * (large - small) / (times[1] - times[0])


def _chained(torch: Any, size: int) -> float:
    """Seconds of one kernel in a graph of many that read and write the same tensor."""
    data = torch.zeros(size // 4, device="cuda")
    data.mul_(1.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_CHAINED):
            data.mul_(1.0)
    return _seconds(torch, graph.replay) / _CHAINED


def _from_host(torch: Any, is_pinned: bool) -> float:
    host = torch.zeros(_COPIED // 4, pin_memory=is_pinned)
    device = torch.empty(_COPIED // 4, device="cuda")
    return _COPIED / _seconds(torch, lambda: device.copy_(host, non_blocking=is_pinned))


def _launch_ns(torch: Any) -> float:
    """Host time of a launch while the queue is not full."""
    data = torch.zeros(1, device="cuda")
    shortest = float("inf")
    for _ in range(_ROUNDS):
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        for _ in range(_LAUNCHES // _ROUNDS):
            data.add_(1.0)
        shortest = min(shortest, (time.perf_counter_ns() - began) / (_LAUNCHES // _ROUNDS))
    torch.cuda.synchronize()
    return shortest
