"""PyTorch: a small training step on the CPU, or on the GPU where there is one."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

import stepscope
from benchmarks.overhead.windows import STEPS, Step, in_turns

STACKS = "--stacks" in sys.argv
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).to(device)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(128, 256, device=device)


def step() -> None:
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if device == "cuda":
        torch.cuda.synchronize()


@contextmanager
def own() -> Iterator[Step]:
    """Writes its file, as ours does and as everyone wants it: a window after one that was written takes longer, whoever wrote it."""
    config: Any = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    plan = torch.profiler.schedule(wait=0, warmup=0, active=STEPS, repeat=1)
    with tempfile.TemporaryDirectory() as folder, torch.profiler.profile(
        schedule=plan, record_shapes=True, profile_memory=True, with_stack=STACKS, with_flops=True,
        with_modules=STACKS, experimental_config=config,
        on_trace_ready=torch.profiler.tensorboard_trace_handler(folder),
    ) as profiler:  # fmt: skip
        yield profiler.step


@contextmanager
def ours() -> Iterator[Step]:
    with tempfile.TemporaryDirectory() as folder:
        plan = stepscope.schedule(active=STEPS)
        with stepscope.profile(folder, schedule=plan, stacks=STACKS, backends=("torch",)) as profiler:
            yield profiler.step


for _ in range(10):
    step()
print(json.dumps(in_turns(step, own, ours)))
