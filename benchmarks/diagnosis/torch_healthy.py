"""PyTorch's jobs with nothing wrong."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from benchmarks.diagnosis.job import Job, Step
from benchmarks.diagnosis.torch_host_jobs import loader_step
from benchmarks.diagnosis.torch_parts import (
    DEVICE,
    Block,
    captured,
    convolutions,
    fused,
    mlp,
    repeated,
)


def _mlp(width: int, depth: int, rows: int) -> Step:
    net = mlp(width, depth)
    optimizer = fused(net)
    batch = torch.randn(rows, width, device=DEVICE)
    return repeated(net, optimizer, batch)


def _transformer(is_compiled: bool = False) -> Step:
    net = nn.Sequential(*(Block(2048) for _ in range(4))).to(DEVICE)
    optimizer = fused(net)
    batch = torch.randn(8, 2048, 2048, device=DEVICE)
    forward = torch.compile(net) if is_compiled else net
    return repeated(forward, optimizer, batch)


def _convolutions() -> Step:
    net = convolutions(256, 6, torch.channels_last)
    optimizer = fused(net)
    batch = torch.randn(128, 256, 56, 56, device=DEVICE).to(memory_format=torch.channels_last)
    return repeated(net, optimizer, batch)


def _graph() -> Step:
    net = mlp(2048, 8)
    optimizer = torch.optim.AdamW(net.parameters(), fused=True, capturable=True)
    batch = torch.randn(4096, 2048, device=DEVICE)
    return captured(repeated(net, optimizer, batch))


def _accumulation() -> Step:
    net = mlp(4096, 4)
    optimizer = fused(net)
    parts = torch.randn(4, 8192, 4096, device=DEVICE)

    def step(_: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        for part in parts:
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                (net(part).float().square().mean() / 4).backward()
        optimizer.step()

    return step


def _half() -> Step:
    net = mlp(4096, 6).to(torch.bfloat16)
    optimizer = fused(net)
    batch = torch.randn(16384, 4096, device=DEVICE, dtype=torch.bfloat16)
    return repeated(net, optimizer, batch, None)


def _recurrent() -> Step:
    net = nn.LSTM(2048, 2048, num_layers=2, batch_first=True).to(DEVICE)
    optimizer = fused(net)
    batch = torch.randn(512, 128, 2048, device=DEVICE)

    def step(_: int) -> None:
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = net(batch)[0].float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def _logs_now_and_then() -> Step:
    inner = _mlp(4096, 6, 8192)

    def step(number: int) -> None:
        inner(number)
        if number % 50 == 0:
            torch.cuda.synchronize()

    return step


def _healthy(name: str, build: Callable[[], Step]) -> Job:
    return Job(f"torch_healthy_{name}", "", build, build, healthy=True)


HEALTHY = (
    _healthy("wide", lambda: _mlp(8192, 3, 8192)),
    _healthy("deep", lambda: _mlp(4096, 10, 8192)),
    _healthy("transformer", _transformer),
    _healthy("compiled", lambda: _transformer(True)),
    _healthy("convolutions", _convolutions),
    _healthy("graph", _graph),
    _healthy("accumulation", _accumulation),
    _healthy("bf16", _half),
    _healthy("recurrent", _recurrent),
    _healthy("logs", _logs_now_and_then),
    _healthy("loader", lambda: loader_step(10)),
)
