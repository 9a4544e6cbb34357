"""PyTorch's jobs in which the host holds the device up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from benchmarks.diagnosis.job import Job, Step
from benchmarks.diagnosis.torch_parts import DEVICE, busy_step, captured, fused, mlp, pair, plain_step


class SlowImages(Dataset[torch.Tensor]):
    """Pictures whose decoding takes a while."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        until = time.perf_counter() + 0.001
        image = np.random.default_rng(index).standard_normal((3, 32, 32), dtype=np.float32)
        while time.perf_counter() < until:
            image = np.clip(image, -3, 3)
        return torch.from_numpy(image)


def loader_step(workers: int) -> Step:
    """A data set decoded in this process or in workers."""
    options: dict[str, Any] = {"num_workers": workers, "pin_memory": True}
    if workers:
        options |= {"persistent_workers": True, "prefetch_factor": 8}
    batches: Iterator[torch.Tensor] = iter(DataLoader(SlowImages(), batch_size=32, **options))
    compute = busy_step()
    spread = nn.Linear(3 * 32 * 32, 4096).to(DEVICE)

    def step(_: int) -> None:
        images = next(batches).to(DEVICE, non_blocking=True).flatten(1)
        compute(spread(images).detach().repeat(256, 1))

    return step


def _own_loader_step(slow: bool) -> Step:
    generator = np.random.default_rng(0)
    ready = torch.randn(2048, 4096).pin_memory()
    buffer = ready.clone().pin_memory()
    compute = busy_step()

    def make_batch() -> torch.Tensor:
        if not slow:
            return ready
        with record_function("make_batch"):
            for part in buffer.chunk(4):
                part.copy_(torch.from_numpy(generator.standard_normal((512, 4096), dtype=np.float32)))
            return buffer

    def step(_: int) -> None:
        compute(make_batch().to(DEVICE, non_blocking=True).repeat(4, 1))

    return step


def add_up(rounds: int) -> float:
    """Work in plain Python."""
    total = 0.0
    for number in range(rounds):
        total += number**0.5
    return total


def _metrics_step(on: bool) -> Step:
    compute = busy_step()

    def step(_: int) -> None:
        compute(None)
        if on:
            with record_function("compute_metrics"):
                add_up(300_000)

    return step


def _metrics_with_stacks_step(on: bool) -> Step:
    compute = busy_step()

    def step(_: int) -> None:
        compute(None)
        if on:
            add_up(300_000)

    return step


def _sleep_step(on: bool) -> Step:
    compute = busy_step()

    def step(_: int) -> None:
        compute(None)
        if on:
            time.sleep(0.02)

    return step


def _item_step(on: bool) -> Step:
    net = mlp(2048, 12)
    optimizer = fused(net)
    batch = torch.randn(16384, 2048, device=DEVICE)

    def step(_: int) -> None:
        x = batch
        figures = []
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            for layer in net:
                x = layer(x)
                for figure in (x.detach()[0].mean(), x.detach()[0].amax(), x.detach()[0].amin()):
                    figures.append(figure)
                    if on and figure.item() > 1e9:
                        raise ValueError("diverged")
            loss = x.float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def _tiny_layers(graph: bool) -> Step:
    net = mlp(128, 40)
    batch = torch.randn(512, 128, device=DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch, None)

    return captured(step) if graph else step


def _cell_loop(graph: bool) -> Step:
    cell = nn.GRUCell(256, 256).to(DEVICE)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.01, fused=True)
    batch = torch.randn(32, 256, 256, device=DEVICE)

    def step(_: int) -> None:
        state = torch.zeros(256, 256, device=DEVICE)
        for moment in batch:
            state = cell(moment, state)
        optimizer.zero_grad(set_to_none=True)
        state.square().mean().backward()
        optimizer.step()

    return captured(step) if graph else step


def _optimizer_step(fast: bool) -> Step:
    net = mlp(1024, 64)
    # Many small parameters, as norms, biases and adapters are.
    batch = torch.randn(32768, 1024, device=DEVICE)
    how: dict[str, Any] = {"fused": True} if fast else {"foreach": False}
    optimizer = torch.optim.AdamW(net.parameters(), **how)

    def step(_: int) -> None:
        plain_step(net, optimizer, batch)

    return step


def _shapes_step(changing: bool) -> Step:
    net = torch.compile(mlp(4096, 4), dynamic=False)
    optimizer = fused(net)
    torch._dynamo.config.recompile_limit = 1000

    def step(number: int) -> None:
        rows = 8192 + (8 * (number % 64) if changing else 0)
        plain_step(net, optimizer, torch.randn(rows, 4096, device=DEVICE))

    return step


def _checkpoint_step(on: bool) -> Step:
    net = mlp(4096, 4)
    optimizer = fused(net)
    batch = torch.randn(8192, 4096, device=DEVICE)
    target = Path(tempfile.mkdtemp()) / "checkpoint.pt"

    def step(number: int) -> None:
        plain_step(net, optimizer, batch)
        if on and number % 5 == 0:
            with record_function("save_checkpoint"):
                torch.save(net.state_dict(), target)

    return step


HOST_JOBS = (
    Job("torch_loader", "input-bound", **pair(loader_step, 0, 10)),
    Job("torch_own_loader", "input-bound", **pair(_own_loader_step, True, False)),
    Job("torch_metrics", "host-python", **pair(_metrics_step, True, False)),
    Job(
        "torch_metrics_stacks",
        "host-python",
        **pair(_metrics_with_stacks_step, True, False),
        options={"with_stack": True},
    ),
    Job("torch_sleep", "idle-unexplained", **pair(_sleep_step, True, False)),
    Job("torch_item", "device-sync", **pair(_item_step, True, False)),
    Job("torch_tiny_layers", "launch-bound", **pair(_tiny_layers, False, True)),
    Job("torch_cell_loop", "launch-bound", **pair(_cell_loop, False, True)),
    Job("torch_optimizer", "optimizer-loop", **pair(_optimizer_step, False, True), steps=2),
    Job("torch_shapes", "recompilation", **pair(_shapes_step, True, False)),
    Job("torch_checkpoint", "step-outliers", **pair(_checkpoint_step, True, False), steps=10),
)
