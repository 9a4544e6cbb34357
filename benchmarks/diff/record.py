"""Records jobs for the diff on a GPU: each several times in processes of their own, and with one planted change.

`python -m benchmarks.diff.record OUT` writes `JOB.CHANGE.NUMBER.pt.trace.json.gz`.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda"
STEPS = 6
WARM_UP = 8


@dataclass(frozen=True)
class Setting:
    """What a job is run with; a change alters one of them."""

    width: int
    depth: int
    batch: int
    length: int = 256
    dtype: torch.dtype | None = torch.bfloat16
    syncs: bool = False
    images: bool = False


# The noise of runs was measured on all four: none of them says how a job does that was never seen.
JOBS = {
    "busy": Setting(width=1024, depth=3, batch=24),
    "small": Setting(width=128, depth=3, batch=4, length=64),
    "wide": Setting(width=2048, depth=2, batch=48, length=512),
    "conv": Setting(width=128, depth=3, batch=64, length=56, images=True),
}
PLANTED: dict[str, Callable[[Setting], Setting]] = {
    "none": lambda setting: setting,
    "batch": lambda setting: replace(setting, batch=setting.batch * 2),
    "fp32": lambda setting: replace(setting, dtype=None),
    "sync": lambda setting: replace(setting, syncs=True),
}


class Block(nn.Module):
    """A transformer block; looks at a value of its output if asked to, which makes the host wait."""

    def __init__(self, width: int, syncs: bool) -> None:
        super().__init__()
        self.width, self.syncs = width, syncs
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention and a feed-forward net."""
        batch, length, _ = x.shape
        heads = self.project(self.first(x)).view(batch, length, 3, self.width // 64, 64)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, self.width))
        x = x + self.down(functional.gelu(self.up(self.second(x))))
        if self.syncs and float(x[0, 0, 0]) > 1e9:
            raise ValueError("diverged")
        return x


class Convolutions(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, width: int, syncs: bool) -> None:
        super().__init__()
        self.syncs = syncs
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """With a look at a value, if asked for."""
        out: torch.Tensor = x + self.second(functional.relu(self.norm(self.first(x))))
        if self.syncs and float(out[0, 0, 0, 0]) > 1e9:
            raise ValueError("diverged")
        return out


def net_of(setting: Setting) -> tuple[nn.Module, torch.Tensor]:
    """The net and its batch."""
    kind = Convolutions if setting.images else Block
    net = nn.Sequential(*(kind(setting.width, setting.syncs) for _ in range(setting.depth))).to(DEVICE)
    side = (
        (setting.width, setting.length, setting.length) if setting.images else (setting.length, setting.width)
    )
    return net, torch.randn(setting.batch, *side, device=DEVICE)


def record(setting: Setting, path: Path) -> None:
    """A window of steps of a warm job."""
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(0)
    net, batch = net_of(setting)
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=WARM_UP, warmup=3, active=STEPS, repeat=1),
        record_shapes=True,
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
    ) as prof:
        for _ in range(WARM_UP + 3 + STEPS):
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=setting.dtype is not None):
                loss = net(batch).float().square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            prof.step()
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", 9) as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()


def main() -> None:
    """All recordings, each in a process of its own: what differs between processes is part of the noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("JOB", "CHANGE", "NUMBER"))
    parser.add_argument("--jobs", nargs="*", default=list(JOBS))
    parser.add_argument("--same", type=int, default=8, help="recordings of the unchanged job")
    parser.add_argument("--changed", type=int, default=2, help="recordings of each change")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        job, change, number = options.one
        record(PLANTED[change](JOBS[job]), options.out / f"{job}.{change}.{number}.pt.trace.json")
        return
    for job in options.jobs:
        for change in PLANTED:
            for number in range(options.same if change == "none" else options.changed):
                wanted = ["--one", job, change, str(number)]
                command = [sys.executable, "-m", "benchmarks.diff.record", str(options.out), *wanted]
                ended = subprocess.run(command, check=False, capture_output=True, text=True)
                print(
                    job,
                    change,
                    number,
                    ended.returncode,
                    ended.stderr[-200:] if ended.returncode else "",
                    flush=True,
                )


if __name__ == "__main__":
    main()
