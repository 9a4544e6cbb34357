"""PyTorch: a DataLoader whose worker processes have one slow function."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

import stepscope
from tests.capture.jobs.facts import tell


class Slow(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 96

    def __getitem__(self, index: int) -> torch.Tensor:
        return augment(torch.ones(8))


def augment(item: torch.Tensor) -> torch.Tensor:
    time.sleep(0.01)
    return item * 2


def own_init(number: int) -> None:
    torch.manual_seed(number)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=2, worker_init_fn=own_init)
    with stepscope.profile(Path(sys.argv[1]), schedule=stepscope.schedule(skip=4, active=12)) as prof:
        for _batch in prof.input(loader):
            prof.step()
    report = prof.report(sections=("input",))
    note = stepscope.load(prof.files[0]).traces[0].info.capture["input"]
    stages = [[stage.name, stage.kind, stage.self_ns] for stage in report.input.stages]
    tell(note=note, stages=stages, verdict=report.input.verdict, kept=loader.worker_init_fn is own_init)
