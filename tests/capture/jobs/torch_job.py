"""PyTorch: eager training with a DataLoader, a custom op, regions, and torch.compile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

import stepscope
from tests.capture.jobs.facts import facts, tell

FOLDER = Path(sys.argv[1])
STEPS = stepscope.schedule(skip=4, warmup=2, active=4)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(512, 64), torch.randint(0, 10, (512,)))


@stepscope.op("my_kernel")
def my_kernel(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sum()


def train(x: torch.Tensor, y: torch.Tensor, forward: Any = model) -> None:
    with stepscope.annotate("forward"):
        out = forward(x)
        loss = torch.nn.functional.cross_entropy(out, y) + 0 * my_kernel(out)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def recorded(name: str, forward: Any = model, **options: Any) -> stepscope.Profiler:
    with stepscope.profile(FOLDER / name, **options) as prof:
        for x, y in prof.input(torch.utils.data.DataLoader(data, batch_size=32)):
            train(x, y, forward)
            prof.step()
    return prof


def regions() -> stepscope.Profiler:
    prof = stepscope.Profiler(FOLDER / "regions")
    x, y = data[:32]
    for _ in range(3):
        torch.sin(x).sum()
        with prof.region("train"):
            train(x, y)
    prof.stop()
    return prof


def compiled() -> dict[str, Any]:
    """Annotations inside a compiled function: one graph, no break, and no second one when recording begins."""
    torch._dynamo.config.error_on_recompile = True
    torch._dynamo.utils.counters.clear()

    def function(x: torch.Tensor) -> torch.Tensor:
        with stepscope.annotate("inside"):
            y = my_kernel(x) + x
        stepscope.step()
        return y

    fast = torch.compile(function, fullgraph=True, backend="eager")
    fast(torch.ones(8))
    with stepscope.profile(FOLDER / "compiled") as prof:
        for _ in range(3):
            fast(torch.ones(8))
            prof.step()
    counters = torch._dynamo.utils.counters
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": dict(counters["graph_break"]),
        "files": len(prof.files),
    }


if __name__ == "__main__":
    scheduled = recorded("scheduled", schedule=STEPS)
    packed = recorded("packed", schedule=STEPS, packed=True, stacks=False, telemetry=False)
    tell(
        scheduled=facts(scheduled),
        packed=facts(packed),
        plain=facts(recorded("plain")),
        graph=facts(recorded("graph", torch.compile(model, backend="eager"), schedule=STEPS)),
        regions=facts(regions()),
        compiled=compiled(),
    )
