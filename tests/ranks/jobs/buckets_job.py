"""Several processes that train together over gloo with many buckets, recorded by torch.profiler; one sleeps in each step.

python buckets_job.py OUT INIT_FILE WORLD LATE_RANK SECONDS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # with the first optimizer: here once, and not in every rank
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import profile, schedule

from tests.ranks.jobs.forks import run_ranks

LAYERS, WARM_UP, ACTIVE = 12, 3, 6
SMALL_BUCKETS_MB = 0.02


def run(rank: int) -> None:
    """Write a trace, and when each of its steps was ready for the backward pass."""
    out, init, world, late, seconds = sys.argv[1:6]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{init}", rank=rank, world_size=int(world))
    net = DistributedDataParallel(
        nn.Sequential(*(nn.Linear(64, 64) for _ in range(LAYERS))), bucket_cap_mb=SMALL_BUCKETS_MB
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    ready = []
    recorder = profile(
        schedule=schedule(wait=1, warmup=WARM_UP - 1, active=ACTIVE, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(f"{out}/{rank}.json"),
    )
    with recorder as prof:
        for _ in range(WARM_UP + ACTIVE):
            loss = net(torch.randn(8, 64)).square().mean()
            if rank == int(late):
                time.sleep(float(seconds))
            ready.append(time.time_ns())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    Path(out, f"rank{rank}.ready").write_text(json.dumps(ready[WARM_UP:]))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    run_ranks(int(sys.argv[3]), run)
