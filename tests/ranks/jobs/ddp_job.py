"""Several processes that train together over gloo on CPUs; one of them does more in each step than the others.

python ddp_job.py OUT INIT_FILE WORLD LATE_RANK HOW
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import torch
import torch._dynamo  # with the first optimizer: here once, and not in every rank
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import stepscope
from tests.ranks.jobs.forks import run_ranks

SLOWER_SECONDS = float(os.environ["SLOWER_SECONDS"])
STEPS = 8


def batches(slowly: bool) -> Iterator[torch.Tensor]:
    """What the loop is fed with."""
    for _ in range(STEPS):
        if slowly:
            time.sleep(SLOWER_SECONDS)
        yield torch.randn(16, 64)


def run(rank: int) -> None:
    """Record five of the steps."""
    out, init, world, late, how = sys.argv[1:6]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{init}", rank=rank, world_size=int(world))
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    is_late = rank == int(late)
    with stepscope.profile(out, schedule=stepscope.schedule(warmup=2, active=5)) as prof:
        for batch in prof.input(batches(is_late and how == "input")):
            if is_late and how == "python":
                with stepscope.annotate("metrics"):
                    time.sleep(SLOWER_SECONDS)
            loss = net(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    run_ranks(int(sys.argv[3]), run)
