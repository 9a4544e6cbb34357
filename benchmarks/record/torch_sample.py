"""Records the PyTorch profiles that ship with the project or serve as fixtures. Wants one CUDA device.

  python torch_sample.py OUT

tiny_gpt: two ProfilerSteps of a small transformer with stacks, shapes, memory and modules.
graph:    a CUDA graph replayed twice: one launch, many kernels.
compiled: torch.compile with Triton kernels.
sync:     two streams that wait for each other, with CUDA sync events.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

DEVICE = "cuda"
ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


class Block(nn.Module):
    """A transformer block, small enough for a fixture."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then the feed-forward part."""
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


def window(target: Path, warmup: int, active: int, **options: object) -> profile:
    """A profiler that writes its one window as soon as it is over."""
    plan = schedule(wait=0, warmup=warmup, active=active, repeat=1)
    return profile(
        activities=ACTIVITIES,
        schedule=plan,
        on_trace_ready=lambda p: p.export_chrome_trace(str(target)),
        **options,
    )


def model() -> nn.Module:
    """Two blocks and a head."""
    return nn.Sequential(Block(256), Block(256), nn.Linear(256, 64)).to(DEVICE)


def train_step(net: nn.Module, optimizer: torch.optim.Optimizer, data: torch.Tensor) -> float:
    """One step with a host-side wait for the loss."""
    with record_function("make_batch"):
        batch = data.pin_memory().to(DEVICE, non_blocking=True)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        loss = net(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def tiny_gpt(out: Path) -> None:
    """A plain eager training loop."""
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    data = torch.randn(8, 64, 256)
    options = {
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": True,
        "with_modules": True,
        "with_flops": True,
    }
    with window(out / "tiny_gpt.pt.trace.json", 3, 3, **options) as prof:
        for _ in range(6):
            train_step(net, optimizer, data)
            prof.step()


def graph(out: Path) -> None:
    """One cudaGraphLaunch for many kernels."""
    net = model().eval()
    data = torch.randn(8, 64, 256, device=DEVICE)
    stream = torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            for _ in range(3):
                net(data)
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            net(data)
        with window(out / "cuda_graph.pt.trace.json", 1, 2) as prof:
            for _ in range(3):
                captured.replay()
                torch.cuda.synchronize()
                prof.step()


def compiled(out: Path) -> None:
    """Inductor's Triton kernels."""
    net = torch.compile(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = torch.randn(8, 64, 256)
    for _ in range(3):
        train_step(net, optimizer, data)
    with window(out / "compiled.pt.trace.json", 1, 2) as prof:
        for _ in range(3):
            train_step(net, optimizer, data)
            prof.step()


def sync(out: Path) -> None:
    """Streams that wait for each other's events."""
    config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.randn(1024, 1024, device=DEVICE)
    torch.cuda.synchronize()
    with window(out / "streams.pt.trace.json", 1, 2, experimental_config=config) as prof:
        for _ in range(3):
            with torch.cuda.stream(a):
                y = x @ x
                done = torch.cuda.Event()
                done.record(a)
            with torch.cuda.stream(b):
                b.wait_event(done)
                (y + 1).sum()
            torch.cuda.synchronize()
            prof.step()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for record in (tiny_gpt, graph, compiled, sync):
        record(target)
