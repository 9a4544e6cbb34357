"""Large bf16 matrix products with little around them: nothing to gain."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
device = "cuda" if torch.cuda.is_available() else "cpu"
width, batch = (8192, 8192) if device == "cuda" else (256, 64)
model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU()) for _ in range(4))).to(
    device, torch.bfloat16
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
x, y = (
    torch.randn(batch, width, device=device, dtype=torch.bfloat16),
    torch.randn(batch, width, device=device, dtype=torch.bfloat16),
)
for step in range(100_000):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
