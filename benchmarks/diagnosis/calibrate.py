"""How much a profiler adds to the host's time, per event: the figures in stepscope/registers/calibration/profiler.py come from here.

python -m benchmarks.diagnosis.calibrate OUT
A step that only launches tiny kernels is as long as the host makes it. It is timed without a profiler and under it, with
each option, for several mixes of ops, launches and Python frames; the differences over the events recorded are the costs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

ROUNDS = 300


def main() -> None:
    """All mixes under all options, as lines of JSON."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with (out / "calibrate.jsonl").open("w") as file:
        for name, step in mixes().items():
            for options in ({}, {"record_shapes": True}, {"with_stack": True}, {"profile_memory": True}):
                line = json.dumps(measure(name, step, options))
                print(line, flush=True)
                file.write(line + "\n")


def mixes() -> dict[str, Callable[[], Any]]:
    """Steps in which ops, launches and Python frames come in different proportions."""
    small = torch.zeros(16, device="cuda")
    net = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(20))).cuda()
    rows = torch.zeros(8, 32, device="cuda")

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            small.add_(1)

    return {
        "add": lambda: small.add_(1),
        "add_three": lambda: (small + small).mul(2).sum(),
        "views": lambda: [small.view(4, 4).t().reshape(-1) for _ in range(3)],
        "empty": lambda: [torch.empty(16, device="cuda") for _ in range(3)],
        "linear": lambda: net(rows),
        "autograd": lambda: net(rows).sum().backward(),
        "frames": lambda: deep(10),
        "autocast": lambda: _autocast(net, rows),
    }


def _autocast(net: torch.nn.Module, rows: torch.Tensor) -> None:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        net(rows)


def timed(step: Callable[[], Any]) -> float:
    """Host time per call, the best of five: what the profiler adds is not noise."""
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(ROUNDS // 5):
            step()
        best = min(best, (time.perf_counter_ns() - begin) / (ROUNDS // 5))
    torch.cuda.synchronize()
    return best


def measure(name: str, step: Callable[[], Any], options: dict[str, bool]) -> dict[str, Any]:
    """Time without and with the profiler, and how many events of each kind a call gave."""
    for _ in range(20):
        step()
    plain = timed(step)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], **options) as prof:
        profiled = timed(step)
    path = Path("/tmp/calibrate.json")
    prof.export_chrome_trace(str(path))
    counts: dict[str, float] = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        if event.get("ph") in ("X", "i"):
            kind = event.get("cat", "")
            counts[kind] = counts.get(kind, 0) + 1 / ROUNDS
    return {
        "mix": name,
        "options": list(options),
        "plain_ns": plain,
        "profiled_ns": profiled,
        "counts": {kind: round(count, 2) for kind, count in counts.items()},
    }


if __name__ == "__main__":
    main()
