"""A physics-style network of many pointwise operations on small tensors."""

import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)
        self.scale, self.shift = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        h = torch.sin(self.a(x)) * self.scale + self.shift
        h = h * torch.sigmoid(h) + 0.1 * torch.cos(h) - 0.05 * h * h
        h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, keepdim=True) + 1e-5).sqrt()
        return x + torch.tanh(self.b(h)) * 0.5


model = nn.Sequential(*(Block(128) for _ in range(12 if device == "cuda" else 3)), nn.Linear(128, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(512, 128, device=device)
y = torch.sin(x.sum(-1, keepdim=True))
for step in range(100_000):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
