"""PyTorch: epochs of four batches from a DataLoader whose worker process does not persist."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import stepscope
from tests.capture.jobs.facts import tell

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(list(range(8)), batch_size=2, num_workers=1)
    with stepscope.profile(Path(sys.argv[1]), schedule=stepscope.schedule(skip=6, active=1)) as prof:
        for _epoch in range(4):
            for _batch in loader:
                prof.step()
    note = stepscope.load(prof.files[0]).traces[0].info.capture
    tell(loader_starts=note["loader_starts"], problems=note["problems"])
