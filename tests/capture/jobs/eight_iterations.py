"""Eight equal iterations of PyTorch inside `profile`, without a call of step()."""

from __future__ import annotations

import sys

import torch

import stepscope
from tests.capture.jobs.facts import tell

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with stepscope.profile(sys.argv[1]) as prof:
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.randn(16, 64)).sum().backward()
        optimizer.step()
steps = prof.report(sections=("steps",)).steps
tell(source=steps.source, count=steps.count)
