"""Records small trainings and what torch's own `key_averages()` says of the same run, for tests of agreement.

  python key_averages.py OUT

Writes NAME.pt.trace.json.gz and NAME.key_averages.json.gz, with a GPU if there is one: a convolutional net and a
transformer, in fp32 and under autocast, with annotations and without, with shapes and FLOPs.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ACTIVITIES = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if DEVICE == "cuda" else [])]
STEPS = 3
Batch = tuple[torch.Tensor, torch.Tensor]


class Conv(nn.Module):
    """Convolutions with padding, stride and groups."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, groups=4),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pictures to classes."""
        return self.head(self.body(x).mean((2, 3)))


class Attention(nn.Module):
    """Attention by the library, and once more by bmm and baddbmm."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One block."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        scores = torch.bmm(x, x.transpose(1, 2)).softmax(-1)
        return x + self.mlp(torch.baddbmm(x, scores, x))


class Transformer(nn.Module):
    """Two blocks between an embedding and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 128)
        self.layers = nn.Sequential(Attention(), Attention())
        self.head = nn.Linear(128, 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Words to scores of the next ones."""
        return self.head(self.layers(self.embed(x))).flatten(0, 1)


def pictures() -> Batch:
    """A batch made on the host."""
    return torch.randn(16, 3, 32, 32).to(DEVICE), torch.randint(0, 10, (16,)).to(DEVICE)


def words() -> Batch:
    """A batch made on the host."""
    return torch.randint(0, 100, (8, 64)).to(DEVICE), torch.randint(0, 100, (8 * 64,)).to(DEVICE)


def record(
    out: Path,
    name: str,
    net: nn.Module,
    data: Callable[[], Batch],
    *,
    autocast: bool,
    annotated: bool,
    optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW,
) -> None:
    """Three steps of a training, and what torch says of them."""
    net = net.to(DEVICE)
    optim = optimizer(net.parameters(), lr=1e-3)

    def named(label: str) -> AbstractContextManager[object]:
        return record_function(label) if annotated else nullcontext()

    def step() -> float:
        with named("load"):
            x, y = data()
        with named("forward"), torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            loss = nn.functional.cross_entropy(net(x), y)
        with named("backward"):
            loss.backward()
        optim.step()
        optim.zero_grad()
        return loss.item()

    def keep(prof: profile) -> None:
        plain = out / f"{name}.pt.trace.json"
        prof.export_chrome_trace(str(plain))
        _compressed(out / f"{plain.name}.gz", plain.read_bytes())
        plain.unlink()
        found = {
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
            "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu",
            "all": list(rows(prof.key_averages())),
            "by_shape": list(rows(prof.key_averages(group_by_input_shape=True))),
        }
        _compressed(out / f"{name}.key_averages.json.gz", json.dumps(found, separators=(",", ":")).encode())

    for _ in range(3):
        step()
    plan = schedule(wait=0, warmup=1, active=STEPS)
    options: dict[str, Any] = {"record_shapes": True, "with_flops": True, "on_trace_ready": keep}
    with profile(activities=ACTIVITIES, schedule=plan, **options) as prof:
        for _ in range(STEPS + 1):
            step()
            prof.step()


def rows(averages: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """The figures that are compared, times in µs."""
    for row in averages:
        yield {
            "key": row.key,
            "calls": row.count,
            "device_type": str(row.device_type).rpartition(".")[2],
            "cpu_total_us": row.cpu_time_total,
            "cpu_self_us": row.self_cpu_time_total,
            "device_total_us": row.device_time_total,
            "device_self_us": row.self_device_time_total,
            "flops": row.flops,
            "shapes": row.input_shapes,
            "annotation": bool(getattr(row, "is_user_annotation", False)),
        }


def _compressed(path: Path, data: bytes) -> None:
    with gzip.GzipFile(path, "wb", 9, mtime=0) as target:
        target.write(data)


def main() -> None:
    """All recordings."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    record(out, "conv", Conv(), pictures, autocast=False, annotated=True)
    last = Conv().to(memory_format=torch.channels_last)
    record(out, "conv_bf16", last, pictures, autocast=True, annotated=False)
    record(out, "transformer_bf16", Transformer(), words, autocast=True, annotated=True)
    sgd = torch.optim.SGD
    record(out, "transformer_sgd", Transformer(), words, autocast=False, annotated=False, optimizer=sgd)


if __name__ == "__main__":
    main()
