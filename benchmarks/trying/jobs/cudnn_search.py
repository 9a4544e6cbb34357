"""A segmentation-like network with large kernels and odd channel counts, fixed shapes, cudnn.benchmark left off."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
batch, size, c = (16, 160, 48) if device == "cuda" else (1, 24, 6)
model = nn.Sequential(
    nn.Conv2d(3, c, 9, padding=4),
    nn.ReLU(),
    nn.Conv2d(c, c, 5, padding=2),
    nn.ReLU(),
    nn.Conv2d(c, 2 * c, 5, padding=4, dilation=2),
    nn.ReLU(),
    nn.Conv2d(2 * c, 2 * c, 3, padding=1, groups=2),
    nn.ReLU(),
    nn.Conv2d(2 * c, 5, 1),
).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = (
    torch.randn(batch, 3, size, size, device=device),
    torch.randint(0, 5, (batch, size, size), device=device),
)
for step in range(100_000):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
