"""Frees the cache after each step: a habit from a smaller card."""

import gc

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
width, batch = (1024, 8192) if device == "cuda" else (64, 64)
model = nn.Sequential(
    *(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(10)), nn.Linear(width, 10)
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x, y = torch.randn(batch, width, device=device), torch.randint(0, 10, (batch,), device=device)
for step in range(100_000):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
    torch.cuda.empty_cache()
