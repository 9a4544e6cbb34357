"""PyTorch's jobs. Shapes are chosen for an H100-class device; each step takes 2 to 100 ms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from benchmarks.diagnosis.job import Job, Step

DEVICE = "cuda"


def mlp(width: int, depth: int) -> nn.Sequential:
    """Linear layers and GELUs."""
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU()))).to(
        DEVICE
    )


def plain_step(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: torch.Tensor,
    dtype: torch.dtype | None = torch.bfloat16,
) -> torch.Tensor:
    """Forward, backward, update."""
    with torch.autocast(DEVICE, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
        loss = net(batch).float().square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss


def fused(net: nn.Module) -> torch.optim.Optimizer:
    """An optimizer that is no bottleneck."""
    return torch.optim.AdamW(net.parameters(), fused=True)


class SlowImages(Dataset[torch.Tensor]):
    """Pictures whose decoding takes a while."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        until = time.perf_counter() + 0.0008
        generator = np.random.default_rng(index)
        image = generator.standard_normal((3, 64, 64), dtype=np.float32)
        while time.perf_counter() < until:
            image = np.clip(image, -3, 3)
        return torch.from_numpy(image)


def _loader_step(workers: int) -> Step:
    options: dict[str, Any] = {"num_workers": workers, "pin_memory": True}
    if workers:
        options |= {"persistent_workers": True, "prefetch_factor": 4}
    batches: Iterator[torch.Tensor] = iter(DataLoader(SlowImages(), batch_size=64, **options))
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 4096), nn.GELU(), nn.Linear(4096, 4096)).to(
        DEVICE
    )
    optimizer = fused(net)

    def step(_: int) -> None:
        plain_step(net, optimizer, next(batches).to(DEVICE, non_blocking=True))

    return step


def _metrics_step(on: bool) -> Step:
    net = mlp(2048, 6)
    optimizer = fused(net)
    batch = torch.randn(1024, 2048, device=DEVICE)

    def host_metrics() -> float:
        total: float = sum(float(i) ** 0.5 for i in range(150_000))
        return total

    def step(_: int) -> None:
        plain_step(net, optimizer, batch)
        if on:
            with record_function("compute_metrics"):
                host_metrics()

    return step


def _item_step(on: bool) -> Step:
    net = mlp(1024, 24)
    optimizer = fused(net)
    batch = torch.randn(2048, 1024, device=DEVICE)

    def step(_: int) -> None:
        x = batch
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            for layer in net:
                x = layer(x)
                if on and x.float().mean().item() > 1e9:
                    raise ValueError("diverged")
            loss = x.float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def _precision_step(tf32: bool) -> Step:
    net = mlp(4096, 6)
    optimizer = fused(net)
    batch = torch.randn(4096, 4096, device=DEVICE)

    def step(_: int) -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        plain_step(net, optimizer, batch, None)

    return step


def _convolution_step(tf32: bool) -> Step:
    net = nn.Sequential(*(nn.Conv2d(256, 256, 3, padding=1) for _ in range(4))).to(
        DEVICE, memory_format=torch.channels_last
    )
    optimizer = fused(net)
    batch = torch.randn(64, 256, 32, 32, device=DEVICE).to(memory_format=torch.channels_last)

    def step(_: int) -> None:
        torch.backends.cudnn.allow_tf32 = tf32
        plain_step(net, optimizer, batch, None)

    return step


def _tiny_layers(graph: bool) -> Step:
    net = mlp(128, 60)
    batch = torch.randn(32, 128, device=DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch, None)

    if not graph:
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for number in range(3):
            step(number)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step(0)
    return lambda _: captured.replay()


def _copy_step(ahead: bool) -> Step:
    net = mlp(2048, 8)
    optimizer = fused(net)
    source = torch.randn(16384, 2048).pin_memory()
    side = torch.cuda.Stream()
    held: list[torch.Tensor] = [source.to(DEVICE)]

    def slow(_: int) -> None:
        plain_step(net, optimizer, source.to(DEVICE, non_blocking=True))

    def mended(_: int) -> None:
        torch.cuda.current_stream().wait_stream(side)
        batch = held[0]
        batch.record_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            held[0] = source.to(DEVICE, non_blocking=True)
        plain_step(net, optimizer, batch)

    return mended if ahead else slow


def _optimizer_step(fast: bool) -> Step:
    net = mlp(512, 80)
    batch = torch.randn(4096, 512, device=DEVICE)
    optimizer = (
        torch.optim.AdamW(net.parameters(), fused=True)
        if fast
        else torch.optim.AdamW(net.parameters(), foreach=False)
    )

    def step(_: int) -> None:
        plain_step(net, optimizer, batch)

    return step


class Attention(nn.Module):
    """Self-attention, by hand or fused."""

    def __init__(self, is_fused: bool) -> None:
        super().__init__()
        self.is_fused = is_fused
        self.project = nn.Linear(1024, 3072)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sixteen heads of depth 64."""
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, 16, 64).permute(2, 0, 3, 1, 4)
        if self.is_fused:
            out = functional.scaled_dot_product_attention(q, k, v)
        else:
            out = torch.softmax(q @ k.transpose(-1, -2) / 8, dim=-1) @ v
        return out.transpose(1, 2).reshape(batch, length, 1024)


def _attention_step(is_fused: bool) -> Step:
    net = nn.Sequential(*(Attention(is_fused) for _ in range(4))).to(DEVICE)
    optimizer = fused(net)
    batch = torch.randn(8, 2048, 1024, device=DEVICE)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch)

    return step


def _layout_step(channels_last: bool) -> Step:
    form = torch.channels_last if channels_last else torch.contiguous_format
    net = nn.Sequential(
        *(layer for _ in range(8) for layer in (nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()))
    ).to(DEVICE, memory_format=form)
    optimizer = fused(net)
    batch = torch.randn(64, 64, 56, 56, device=DEVICE).to(memory_format=form)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch, torch.float16)

    return step


def _batch_step(size: int) -> Step:
    net = mlp(512, 40)
    optimizer = fused(net)
    batch = torch.randn(size, 512, device=DEVICE)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch)

    return step


def _shapes_step(changing: bool) -> Step:
    net = torch.compile(mlp(512, 4), dynamic=False)
    optimizer = fused(net)

    def step(number: int) -> None:
        length = 256 + (8 * (number % 64) if changing else 0)
        plain_step(net, optimizer, torch.randn(length, 512, device=DEVICE), None)

    torch._dynamo.config.recompile_limit = 1000
    return step


def _leak_step(leaking: bool) -> Step:
    net = mlp(1024, 8)
    optimizer = fused(net)
    batch = torch.randn(2048, 1024, device=DEVICE)
    history: list[torch.Tensor] = []

    def step(_: int) -> None:
        out = net(batch)
        loss = out.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        history.append(out if leaking else loss.detach())

    return step


def _round_trip_step(on: bool) -> Step:
    net = mlp(2048, 6)
    optimizer = fused(net)
    batch = torch.randn(4096, 2048, device=DEVICE)

    def step(_: int) -> None:
        x = net[:6](batch)
        x = x.detach().cpu().clamp(-1, 1).to(DEVICE) if on else x.detach().clamp(-1, 1)
        plain_step(net, optimizer, x)

    return step


def _healthy_step(kind: str) -> Step:
    if kind == "attention":
        return _attention_step(True)
    width, depth, rows = {"wide": (8192, 4, 8192), "deep": (4096, 12, 8192)}[kind]
    net = mlp(width, depth)
    optimizer = fused(net)
    batch = torch.randn(rows, width, device=DEVICE)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch)

    return step


def _pair(build: Any, slow: Any, mended: Any) -> dict[str, Any]:
    return {"slow": lambda: build(slow), "mended": lambda: build(mended)}


JOBS = (
    Job("torch_loader", "input-bound", **_pair(_loader_step, 0, 8)),
    Job("torch_metrics", "host-python", **_pair(_metrics_step, True, False)),
    Job("torch_item", "device-sync", **_pair(_item_step, True, False)),
    Job("torch_fp32_matmul", "fp32-matmul", **_pair(_precision_step, False, True)),
    Job("torch_fp32_convolution", "fp32-matmul", **_pair(_convolution_step, False, True)),
    Job("torch_tiny_layers", "launch-bound", **_pair(_tiny_layers, False, True)),
    Job("torch_copy", "exposed-copy", **_pair(_copy_step, False, True)),
    Job("torch_optimizer", "optimizer-loop", **_pair(_optimizer_step, False, True)),
    Job("torch_attention", "unfused-attention", **_pair(_attention_step, False, True)),
    Job("torch_layout", "layout-conversion", **_pair(_layout_step, False, True)),
    Job("torch_small_batch", "small-batch", **_pair(_batch_step, 64, 4096), samples=(64, 4096)),
    Job("torch_shapes", "recompilation", **_pair(_shapes_step, True, False)),
    Job("torch_leak", "memory-growth", **_pair(_leak_step, True, False), options={"profile_memory": True}),
    Job("torch_round_trip", "round-trip-copy", **_pair(_round_trip_step, True, False)),
    Job("torch_healthy_wide", "", **_pair(_healthy_step, "wide", "wide"), healthy=True),
    Job("torch_healthy_deep", "", **_pair(_healthy_step, "deep", "deep"), healthy=True),
)
