"""What PyTorch's jobs are built of. Shapes are chosen so that an H100-class device is busy unless a bottleneck is planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.cuda_graph import capture_graph
from benchmarks.diagnosis.job import Step

DEVICE = "cuda"


def mlp(width: int, depth: int) -> nn.Sequential:
    """Linear layers and GELUs."""
    layers = (layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU()))
    return nn.Sequential(*layers).to(DEVICE)


def fused(net: nn.Module) -> torch.optim.Optimizer:
    """An optimizer that is no bottleneck."""
    return torch.optim.AdamW(net.parameters(), fused=True)


def plain_step(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: torch.Tensor,
    dtype: torch.dtype | None = torch.bfloat16,
) -> torch.Tensor:
    """Forward, backward, update."""
    with torch.autocast(DEVICE, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
        loss: torch.Tensor = net(batch).float().square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss


def repeated(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: torch.Tensor,
    dtype: torch.dtype | None = torch.bfloat16,
) -> Step:
    """The plain step on one batch. It returns nothing: to look at the loss would be to wait for the device."""

    def step(_: int) -> None:
        plain_step(net, optimizer, batch, dtype)

    return step


def busy_step() -> Callable[[torch.Tensor | None], torch.Tensor]:
    """A step of about 8 ms that keeps the device busy; takes a batch, or makes do with its own."""
    net = mlp(4096, 4)
    optimizer = fused(net)
    own = torch.randn(8192, 4096, device=DEVICE)
    return lambda batch=None: plain_step(net, optimizer, own if batch is None else batch)


class Attention(nn.Module):
    """Self-attention, by hand or fused."""

    def __init__(self, is_fused: bool, width: int = 1024) -> None:
        super().__init__()
        self.is_fused = is_fused
        self.width = width
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Heads of depth 64."""
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, self.width // 64, 64).permute(2, 0, 3, 1, 4)
        if self.is_fused:
            out = functional.scaled_dot_product_attention(q, k, v)
        else:
            out = torch.softmax(q @ k.transpose(-1, -2) / 8, dim=-1) @ v
        return out.transpose(1, 2).reshape(batch, length, self.width)


class Block(nn.Module):
    """A transformer's layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(True, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention and feed-forward with residuals."""
        x = x + self.attention(self.first(x))
        out: torch.Tensor = x + self.feed(self.second(x))
        return out


def convolutions(channels: int, depth: int, form: torch.memory_format) -> nn.Sequential:
    """Convolutions and ReLUs."""
    layers = (
        layer for _ in range(depth) for layer in (nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU())
    )
    return nn.Sequential(*layers).to(DEVICE, memory_format=form)


def captured(step: Step) -> Step:
    """The step as one CUDA graph."""
    graph = capture_graph(lambda: step(0))
    return lambda _: graph.replay()


def pair(build: Callable[[Any], Step], slow: Any, mended: Any) -> dict[str, Any]:
    """The two variants of a job from one function."""
    return {"slow": lambda: build(slow), "mended": lambda: build(mended)}
